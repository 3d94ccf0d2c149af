"""The trace of the current item: what was done for it, and nothing else."""

import msgspec
import pytest

from holon.decide.turns.commits import entry_of
from holon.model.limits import PROMPT_TRACE_LINES_COUNT_MAX
from holon.model.turns.conversation import TextBlock, ThinkingBlock
from holon.model.turns.transcript import AssistantRound, RecordedCall, TurnLog
from holon.model.values import AgentId, TurnId, WorkItemId
from holon.prompt.work import trace_of
from tests.support.builders import MAIN, START, a_brief, a_receipt, a_round, a_tool_call, a_turn

ITEM = WorkItemId("work_1")
OTHER = WorkItemId("work_2")


def log_of(turn_id: str, item: WorkItemId | None, *, agent: str = MAIN) -> TurnLog:
    turn = msgspec.structs.replace(
        a_turn(turn_id), work_item_id=item, agent_id=AgentId(agent), turn_id=TurnId(turn_id)
    )
    spoken = a_round(text=f"said in {turn_id}")
    thinking = ThinkingBlock(text="a secret thought")
    blocks = (thinking, TextBlock(text=f"said in {turn_id}"))
    thought = AssistantRound(
        round=1, spoke=msgspec.structs.replace(spoken.spoke, blocks=blocks), timing=None
    )
    call = a_tool_call(turn)
    return TurnLog(
        turn=turn,
        entries=(entry_of(turn, position=0, at=START, data=thought),),
        calls=(RecordedCall(call=call, receipt=a_receipt(call)),),
    )


@pytest.mark.requirement("prompt:process-trace")
def test_only_turns_of_the_item_and_of_the_agent_are_traced() -> None:
    logs = [
        log_of("turn_1", ITEM),
        log_of("turn_2", OTHER),
        log_of("turn_3", None),
        log_of("turn_4", ITEM, agent="somebody"),
    ]
    brief = msgspec.structs.replace(a_brief("brief_0", turn_id="turn_0"), work_item_id=ITEM)
    known = msgspec.structs.replace(a_brief("brief_1", turn_id="turn_1"), work_item_id=ITEM)
    told = trace_of(MAIN, ITEM, logs, (brief, known, a_brief("brief_9")))
    texts = [line.text for line in told]
    assert [line.what for line in told].count("brief (result)") == 1
    assert "said in turn_1" in texts
    assert not any("turn_2" in text or "turn_3" in text or "turn_4" in text for text in texts)
    assert not any("secret thought" in text for text in texts)
    assert any(text.startswith("done: ") for text in texts)


def test_the_trace_is_bounded_and_there_is_none_without_an_item() -> None:
    logs = [log_of(f"turn_{number}", ITEM) for number in range(40)]
    assert len(trace_of(MAIN, ITEM, logs)) == PROMPT_TRACE_LINES_COUNT_MAX
    assert trace_of(MAIN, None, logs) == ()
