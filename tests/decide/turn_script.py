"""Random turns, driven as the runtime drives them, with the log their commits would leave.

The driver below is written apart from replay: it folds inputs live and records them through the
lane's commits, so that a test can compare what replay makes of the log with what really happened.
"""

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from holon.decide.turns.commits import (
    InterjectionFacts,
    LaneLease,
    RoundFacts,
    entry_of,
    finish_call,
    interjection_entry,
    round_changes,
)
from holon.decide.turns.step import TurnState, advance, nudge_recorded, open_turn, reminder_recorded
from holon.model.commits import AppendTranscript
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import Interjection, TurnLog, WorkReminder
from holon.model.turns.turn import (
    CallModel,
    Finish,
    RunTools,
    SafePoint,
    StopReason,
    ToolReceipt,
    ToolsReturned,
)
from tests.decide.sample_rows import AGENT_ID, ITEM, NOW
from tests.decide.turn_rows import (
    TOOLS,
    TURN,
    bad,
    completes,
    ok,
    opened_log,
    prompt,
    recorded,
    running_snapshot,
    slept,
    spoke,
    use,
)


class RoundScript(NamedTuple):
    """What one round of a random turn does, and where the operator speaks in it."""

    text: str
    names: list[str]
    stop: StopReason
    works: list[bool]
    points: frozenset[SafePoint]
    reminds: bool = False


ROUNDS = st.builds(
    RoundScript,
    text=st.sampled_from(["", " ", "words", "more words"]),
    names=st.lists(
        st.sampled_from(["Read", "Write", "Sleep", "Complete", "Hidden", "Nope"]), max_size=3
    ),
    stop=st.sampled_from(StopReason),
    works=st.lists(st.booleans(), min_size=3, max_size=3),
    points=st.frozensets(st.sampled_from(SafePoint)),
    reminds=st.booleans(),
)
SCRIPTS = st.lists(ROUNDS, min_size=1, max_size=6)


class Moment(NamedTuple):
    """A durable moment of a live turn. `settled` means that no call is under way."""

    log: TurnLog
    state: TurnState
    rounds: int
    usage: TokenUsage
    settled: bool


class LiveTurn:
    """A turn as the lane runs it: fold, record, stop after every durable moment."""

    def __init__(self) -> None:
        self.log = opened_log()
        self.state = open_turn()
        self.rounds = 0
        self.usage = TokenUsage()

    def moment(self, *, settled: bool = True) -> Moment:
        return Moment(self.log, self.state, self.rounds, self.usage, settled)

    def run(self, script: list[RoundScript]) -> Iterator[Moment]:
        yield self.moment()
        for each in script:
            yield from self.interject(each, SafePoint.BEFORE_PROVIDER_CONTINUATION)
            yield from self.speak(each)
            yield from self.interject(each, SafePoint.AFTER_PROVIDER_ROUND)
            if isinstance(self.state.step, RunTools):
                yield from self.interject(each, SafePoint.BEFORE_TOOL_EXECUTION)
                yield from self.run_tools(each, self.state.step)
                yield from self.interject(each, SafePoint.AFTER_TOOL_RESULTS)
                yield from self.remind(each)
            if isinstance(self.state.step, Finish):
                return

    def speak(self, each: RoundScript) -> Iterator[Moment]:
        uses = [use(name, f"r{self.rounds}c{n}") for n, name in enumerate(each.names)]
        said = spoke(each.text, *uses, stop=each.stop)
        self.rounds += 1
        self.usage = self.usage.plus(said.usage)
        self.state, step = advance(self.state, said, tools=TOOLS)
        facts = RoundFacts(
            lease=LaneLease(agent_id=AGENT_ID, turn_id=TURN.turn_id, generation=1),
            turn=TURN,
            round_number=self.rounds,
            position=len(self.log.entries),
            spoke=said,
            step=step,
        )
        self.log = recorded(self.log, round_changes(facts, now=NOW))
        if isinstance(step, CallModel):
            self.state, _ = nudge_recorded(self.state)
        yield self.moment(settled=not isinstance(step, RunTools))

    def interject(self, each: RoundScript, point: SafePoint) -> Iterator[Moment]:
        if point not in each.points:
            return
        facts = InterjectionFacts(
            lease=LaneLease(agent_id=AGENT_ID, turn_id=TURN.turn_id, generation=1),
            turn=TURN,
            message=prompt(),
            text="wait",
            point=point,
            position=len(self.log.entries),
            snapshot=running_snapshot(),
        )
        entry = interjection_entry(facts, now=NOW)
        self.log = recorded(self.log, (AppendTranscript(entry=entry),))
        assert isinstance(entry.data, Interjection)
        self.state, _ = advance(self.state, entry.data.interjected, tools=TOOLS)
        yield self.moment(settled=not isinstance(self.state.step, RunTools))

    def remind(self, each: RoundScript) -> Iterator[Moment]:
        if not each.reminds or not isinstance(self.state.step, CallModel):
            return
        said = WorkReminder(work_item_id=ITEM.id, after_round=self.rounds, text="your work item")
        entry = entry_of(TURN, position=len(self.log.entries), at=NOW, data=said)
        self.log = recorded(self.log, (AppendTranscript(entry=entry),))
        self.state = reminder_recorded(self.state)
        yield self.moment()

    def run_tools(self, each: RoundScript, step: RunTools) -> Iterator[Moment]:
        results = {receipt.call_id: receipt for receipt in step.refused}
        for index, call in enumerate(step.calls):
            receipt = receipt_for(call.name, call.call_id, works=each.works[index])
            results[call.call_id] = receipt
            started = next(r.call for r in self.log.calls if r.call.call_id == call.call_id)
            done = finish_call(started, receipt, state=ToolCallState.SUCCEEDED, duration_ms=1)
            self.log = recorded(self.log, (done,))
            if index < len(step.calls) - 1:
                yield self.moment(settled=False)
        returned = ToolsReturned(receipts=tuple(results[c.call_id] for c in self.state.calls))
        self.state, _ = advance(self.state, returned, tools=TOOLS)
        yield self.moment()


def receipt_for(name: str, call_id: str, *, works: bool) -> ToolReceipt:
    """What a tool of this name gives back."""
    if not works:
        return bad(name, call_id)
    match name:
        case "Sleep":
            return slept(call_id)
        case "Complete":
            return completes("work_1", call_id)
        case _:
            return ok(name, call_id)
