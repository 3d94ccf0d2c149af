"""Replay: a turn rebuilt from its log.

Owns:  the fold from durable transcript entries and call receipts back to a turn's state.
Rule 1: replaying what a turn recorded gives the state and step the live turn had.
Rule 2: a call without a receipt cannot be replayed; recovery answers such calls first.
Rule 3: a turn that is ended from outside keeps what its log holds: its last text, the items it
        completed and their reports.
Rule 4: results are stored with their calls and not among the entries, so they are folded when the
        next round, the failure or the end of the log needs them. An interjection does not need
        them: its order relative to the results makes no difference.
"""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from holon.decide.turns.failures import TURN_SET_ASIDE
from holon.decide.turns.step import (
    ToolPolicy,
    TurnState,
    advance,
    compaction_recorded,
    completions_of,
    first_step,
    nudge_recorded,
    open_turn,
    reminder_recorded,
)
from holon.model.errors import ForbiddenTransitionError
from holon.model.events.briefs import FailureArtifact
from holon.model.providers.attempts import TokenUsage
from holon.model.record import Record
from holon.model.turns.conversation import text_of
from holon.model.turns.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
    RecordedCall,
    RuntimeFailure,
    TranscriptData,
    TurnCompaction,
    TurnLog,
    WorkReminder,
)
from holon.model.turns.turn import (
    Finish,
    ModelFailed,
    RunTools,
    ToolReceipt,
    ToolsReturned,
    TurnStep,
)


class Resumption(Record, frozen=True, kw_only=True):
    """Where to resume. `round_number` counts recorded rounds: the next one is one higher."""

    state: TurnState
    step: TurnStep
    round_number: int
    next_position: int
    usage: TokenUsage


class _Folding(msgspec.Struct):
    """The running fold of one log."""

    tools: ToolPolicy
    state: TurnState
    receipts: dict[tuple[int, int], ToolReceipt]
    round_number: int = 0
    usage: TokenUsage = TokenUsage()

    def fold(self, data: TranscriptData) -> None:
        match data:
            case IncomingMessage():
                return
            case AssistantRound(round=number, spoke=spoke):
                self.return_tools()
                self.round_number, self.usage = number, self.usage.plus(spoke.usage)
                self.state, _ = advance(self.state, spoke, tools=self.tools)
            case ContinuationPrompt():
                self.state, _ = nudge_recorded(self.state)
            case WorkReminder():
                self.return_tools()
                self.state = reminder_recorded(self.state)
            case TurnCompaction(request=request):
                self.return_tools()
                self.state = compaction_recorded(self.state, is_asked=request is not None)
            case Interjection(interjected=interjected):
                self.state, _ = advance(self.state, interjected, tools=self.tools)
            case RuntimeFailure(failure=failure, timeline=timeline, retry_at=retry_at):
                self.return_tools()
                if not isinstance(self.state.step, Finish):
                    failed = ModelFailed(failure=failure, timeline=timeline, retry_at=retry_at)
                    self.state, _ = advance(self.state, failed, tools=self.tools)
            case _:
                assert_never(data)

    def return_tools(self) -> None:
        """Fold the results of the newest round, if they are still due."""
        if not isinstance(self.state.step, RunTools):
            return
        places = [(self.round_number, index) for index in range(len(self.state.calls))]
        if any(place not in self.receipts for place in places):
            raise ForbiddenTransitionError("RunTools", "replay_without_receipt")
        returned = ToolsReturned(receipts=tuple(self.receipts[place] for place in places))
        self.state, _ = advance(self.state, returned, tools=self.tools)


def receipts_by_place(calls: Iterable[RecordedCall]) -> dict[tuple[int, int], ToolReceipt]:
    """Return the receipts of calls, by round and position."""
    return {
        (recorded.call.round, recorded.call.position): recorded.receipt
        for recorded in calls
        if recorded.receipt is not None
    }


def replay(log: TurnLog, *, tools: ToolPolicy) -> Resumption:
    """Rebuild a turn from everything it recorded."""
    folding = _Folding(tools=tools, state=open_turn(), receipts=receipts_by_place(log.calls))
    for entry in log.entries:
        folding.fold(entry.data)
    folding.return_tools()
    return Resumption(
        state=folding.state,
        step=first_step(folding.state),
        round_number=folding.round_number,
        next_position=log.entries[-1].position + 1 if log.entries else 0,
        usage=folding.usage,
    )


class TurnUsage(Record, frozen=True, kw_only=True):
    """What a turn has used so far."""

    usage: TokenUsage
    round_count: int


def used_by_turn(log: TurnLog) -> TurnUsage:
    """Sum up the recorded rounds of a turn."""
    rounds = [e.data.spoke for e in log.entries if isinstance(e.data, AssistantRound)]
    usage = TokenUsage()
    for spoke in rounds:
        usage = usage.plus(spoke.usage)
    return TurnUsage(usage=usage, round_count=len(rounds))


def was_set_aside(log: TurnLog) -> bool:
    """Whether a turn was set aside because the process ended in it; it is never rendered again."""
    last = log.entries[-1].data if log.entries else None
    return isinstance(last, RuntimeFailure) and last.failure.kind == TURN_SET_ASIDE


def cut_off(log: TurnLog, failure: FailureArtifact) -> Finish:
    """Return the end of a turn that is not resumed, from what it recorded so far."""
    receipts = receipts_by_place(log.calls)
    rounds = [e.data for e in log.entries if isinstance(e.data, AssistantRound)]
    texts = [text_of(each.spoke.blocks) for each in rounds]
    completions = (
        completions_of(text, [r for (number, _), r in receipts.items() if number == each.round])
        for each, text in zip(rounds, texts, strict=True)
    )
    return Finish(
        last_text=next((text for text in reversed(texts) if text.strip()), ""),
        failure=failure,
        completions=tuple(completion for found in completions for completion in found),
        made_progress=any(not each.is_error and not each.ends_turn for each in receipts.values()),
    )
