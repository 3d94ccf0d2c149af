"""What was done for a work item lately, read off the turns that were bound to it.

Owns:  the process trace of the current item: calls, words and briefs, oldest first, bounded.
Rule 1: words are the text of a round; thinking is never among them, nor anything of another agent.
Rule 2: a brief stands for its turn where the turn itself is no longer at hand.
"""

from collections.abc import Iterator, Sequence

import msgspec

from holon.decide.trigger_address import without_addresses
from holon.decide.turn_replay import receipts_by_place
from holon.model.brief import BriefRecord
from holon.model.conversation import text_of
from holon.model.ids import AgentId, WorkItemId
from holon.model.limits import PROMPT_ITEM_CHARS_MAX, PROMPT_TRACE_LINES_COUNT_MAX
from holon.model.transcript import AssistantRound, TurnLog
from holon.prompt.facts import TraceLine


def trace_of(
    agent_id: AgentId,
    work_item_id: WorkItemId | None,
    turns: Sequence[TurnLog],
    briefs: Sequence[BriefRecord] = (),
) -> tuple[TraceLine, ...]:
    """Return the newest steps of the work on an item; there are none without one."""
    if work_item_id is None:
        return ()
    bound = [
        log
        for log in turns
        if log.turn.agent_id == agent_id and log.turn.work_item_id == work_item_id
    ]
    at_hand = {log.turn.turn_id for log in bound}
    told = (
        TraceLine(at=brief.created_at, what=f"brief ({brief.kind})", text=brief.text)
        for brief in briefs
        if brief.agent_id == agent_id
        and brief.work_item_id == work_item_id
        and brief.turn_id not in at_hand
    )
    lines = sorted([*told, *(line for log in bound for line in _lines_of(log))], key=_moment)
    return tuple(lines[-PROMPT_TRACE_LINES_COUNT_MAX:])


def _moment(line: TraceLine) -> float:
    return line.at.timestamp()


def _lines_of(log: TurnLog) -> Iterator[TraceLine]:
    receipts = receipts_by_place(log.calls)
    for entry in log.entries:
        if isinstance(entry.data, AssistantRound) and (said := text_of(entry.data.spoke.blocks)):
            yield TraceLine(at=entry.created_at, what="you said", text=_short(said))
    for recorded in log.calls:
        call = recorded.call
        receipt = receipts.get((call.round, call.position))
        ended = "no result" if receipt is None else "failed" if receipt.is_error else "done"
        asked = _short(without_addresses(msgspec.json.encode(call.input).decode()))
        yield TraceLine(at=call.started_at, what=call.name, text=f"{ended}: {asked}")


def _short(text: str) -> str:
    return text[:PROMPT_ITEM_CHARS_MAX]
