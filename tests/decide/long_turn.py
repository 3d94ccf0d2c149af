"""A turn that grows until it no longer fits, as the lane would run and record it.

The driver below asks, answers and records like the runtime, but the model's words and the tools'
results are only sizes. What is decided about the window is the real thing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from holon.decide.turns.commits import LaneLease, RoundFacts, entry_of, finish_call, round_changes
from holon.decide.turns.compaction import (
    BaselineOverBudget,
    Compact,
    Fits,
    ShownHistory,
    WindowDecision,
    compaction_of,
    decide_window,
)
from holon.decide.turns.step import (
    ToolPolicy,
    advance,
    compaction_recorded,
    nudge_recorded,
    open_turn,
)
from holon.model.agents import AgentContext
from holon.model.commits import AppendTranscript
from holon.model.queue import TextBody
from holon.model.turns.conversation import ConversationMessage, ToolUseBlock
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import (
    AssistantRound,
    IncomingMessage,
    Interjection,
    TranscriptData,
    TurnLog,
)
from holon.model.turns.turn import (
    CallModel,
    ModelAnswered,
    OperatorInterjected,
    RunTools,
    SafePoint,
    StopReason,
    TerminalKind,
    ToolReceipt,
    ToolsReturned,
    TurnRecord,
    TurnTerminal,
)
from holon.model.values import CallId, TurnId
from holon.runtime.turns.conversation import GrowingConversation
from tests.decide.sample_rows import AGENT_ID, MESSAGE_ID, NOW
from tests.decide.turn_rows import prompt, recorded, spoke

TOOLS = ToolPolicy(
    exposed=frozenset({"Read", "ApplyPatch"}),
    known=frozenset({"Read", "ApplyPatch"}),
    mutating=frozenset({"ApplyPatch"}),
)


class Round(NamedTuple):
    """One round: how much the model says, what its calls bring, and what the operator adds."""

    said: int = 0
    results: tuple[int, ...] = (100,)
    patches: bool = False
    added: int = 0


ROUNDS = st.builds(
    Round,
    said=st.sampled_from([0, 5, 300, 2_000]),
    results=st.lists(st.sampled_from([0, 40, 700, 3_000, 9_000]), max_size=3).map(tuple),
    patches=st.booleans(),
    added=st.sampled_from([0, 0, 0, 50, 4_000]),
)


def turn_of(index: int) -> TurnRecord:
    """The turn with this number."""
    return TurnRecord(
        turn_id=TurnId(f"turn_{index}"),
        agent_id=AGENT_ID,
        turn_index=index,
        message_id=MESSAGE_ID,
        opened_at=NOW,
    )


def ended(log: TurnLog, kind: TerminalKind = TerminalKind.COMPLETED) -> TurnLog:
    """The log of a turn that is over."""
    terminal = TurnTerminal(
        turn_id=log.turn.turn_id,
        turn_index=log.turn.turn_index,
        kind=kind,
        completed_at=NOW,
        duration_ms=1,
    )
    return msgspec.structs.replace(log, turn=msgspec.structs.replace(log.turn, terminal=terminal))


def with_entry(log: TurnLog, data: TranscriptData) -> TurnLog:
    """The log with one more entry."""
    entry = entry_of(log.turn, position=len(log.entries), at=NOW, data=data)
    return recorded(log, (AppendTranscript(entry=entry),))


def plain_turn(index: int, *, asked: int = 10, said: int = 10) -> TurnLog:
    """A turn of one round, over."""
    incoming = IncomingMessage(message=prompt(TextBody(text="a" * asked)))
    opened = with_entry(TurnLog(turn=turn_of(index)), incoming)
    return ended(with_entry(opened, AssistantRound(round=1, spoke=spoke("b" * said))))


class LongTurn:
    """A running turn. `window` is what was decided before each request."""

    def __init__(
        self, past: ShownHistory, *, budget: int, asked: int = 10, index: int = 40
    ) -> None:
        self.past = past
        self.budget = budget
        incoming = IncomingMessage(message=prompt(TextBody(text="q" * asked)))
        self.log = with_entry(TurnLog(turn=turn_of(index)), incoming)
        self.state = open_turn()
        self.count = 0
        self.growing = GrowingConversation(past, self.log.turn)

    def ask(self) -> WindowDecision:
        """Make the next request fit, as the runtime does before every round."""
        sizes = self.growing.sizes(self.log, budget_bytes=self.budget)
        chosen = decide_window(sizes)
        match chosen:
            case Compact():
                made = compaction_of(self.log, chosen, state=self.state, past=self.past)
                self.log = with_entry(self.log, made)
                self.state = compaction_recorded(self.state, is_asked=made.request is not None)
            case Fits() | BaselineOverBudget():
                pass
        return chosen

    def shown(self) -> tuple[ConversationMessage, ...]:
        """What the model reads now."""
        return self.growing.shown(self.log)

    def resumed(self) -> GrowingConversation:
        """The conversation of whoever goes on with this turn in another process."""
        return GrowingConversation(self.past, self.log.turn)

    def answer(self, each: Round) -> None:
        """The model speaks, its tools answer, the operator adds something."""
        name = "ApplyPatch" if each.patches else "Read"
        self.count += 1
        uses = [
            ToolUseBlock(call_id=CallId(f"r{self.count}c{n}"), name=name, input={"path": "p" * 30})
            for n in range(len(each.results))
        ]
        said = spoke("w" * each.said, *uses, stop=StopReason.TOOL_USE)
        self.speak(said)
        if isinstance(self.state.step, RunTools):
            self.run_tools(each.results, name)
        if each.added:
            self.add("o" * each.added)

    def speak(self, said: ModelAnswered) -> None:
        """Record one round."""
        self.state, step = advance(self.state, said, tools=TOOLS)
        facts = RoundFacts(
            lease=LaneLease(agent_id=AGENT_ID, turn_id=self.log.turn.turn_id, generation=1),
            turn=self.log.turn,
            round_number=self.count,
            position=len(self.log.entries),
            spoke=said,
            step=step,
        )
        self.log = recorded(self.log, round_changes(facts, now=NOW))
        if isinstance(step, CallModel) and step.nudge is not None:
            self.state, _ = nudge_recorded(self.state)

    def run_tools(self, sizes: Sequence[int], name: str) -> None:
        """Give every call of the round its result."""
        receipts = [
            ToolReceipt(call_id=call.call_id, name=name, content="r" * size)
            for call, size in zip(self.state.calls, sizes, strict=True)
        ]
        calls = {recorded.call.call_id: recorded.call for recorded in self.log.calls}
        done = [
            finish_call(calls[r.call_id], r, state=ToolCallState.SUCCEEDED, duration_ms=1)
            for r in receipts
        ]
        self.log = recorded(self.log, done)
        self.state, _ = advance(self.state, ToolsReturned(receipts=tuple(receipts)), tools=TOOLS)

    def add(self, text: str) -> None:
        """The operator speaks up."""
        point = SafePoint.AFTER_TOOL_RESULTS
        said = OperatorInterjected(message_id=MESSAGE_ID, text=text, point=point)
        self.log = with_entry(self.log, Interjection(message_id=MESSAGE_ID, interjected=said))
        self.state, _ = advance(self.state, said, tools=TOOLS)


def a_past(*sizes: int, recap: tuple[str, ...] = (), last: int = 39) -> ShownHistory:
    """Settled turns of these sizes, the last of them with this number."""
    first = last - len(sizes) + 1
    turns = tuple(plain_turn(first + n, asked=size) for n, size in enumerate(sizes))
    return ShownHistory(context=AgentContext(history_from_turn=first, recap=recap), turns=turns)
