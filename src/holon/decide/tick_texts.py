"""What a runtime-owned tick says to the model.

Owns:  the bodies of system and timer ticks. A plain wake hint says nothing: its tick is blank, and
       a blank tick is a sign of life, not a turn.
Rule 1: what a tick carries of others stays theirs: decide/message_view shows each parked body under
        its own label, apart from what the runtime says.
"""

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from holon.decide.fencing import quoted_line
from holon.decide.message_view import HINTS_FIELD
from holon.model.limits import EVENT_TEXT_CHARS_MAX, SECOND_MS, TIMER_LATE_MS_MIN
from holon.model.message import JsonBody, MessageBody, TextBody
from holon.model.snapshot import WeighedItem
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord, WakeHint


def hint_tick_body(hints: Sequence[WakeHint]) -> MessageBody:
    """Every parked body with its source; blank when none of the hints brought anything."""
    if not any(hint.brings_something for hint in hints):
        return TextBody(text="")
    return JsonBody(value={HINTS_FIELD: [msgspec.to_builtins(hint) for hint in hints]})


def hint_refs(hints: Sequence[WakeHint]) -> dict[str, str]:
    """The ids of the triggers that sent the hints, where any did; each once, in their order."""
    ids = dict.fromkeys(hint.external_trigger_id for hint in hints if hint.external_trigger_id)
    return {"external_trigger_id": ",".join(ids)} if ids else {}


def continue_text(weighed: WeighedItem) -> str:
    """Go on with the current item."""
    return f"Continue the current work item {weighed.item.id}: {_short(weighed.item.objective)}"


def offer_text(weighed: WeighedItem) -> str:
    """A queued item is ready to be picked."""
    return (
        f"Work item {weighed.item.id} is ready and nothing in focus can go on: "
        f"{_short(weighed.item.objective)}"
    )


def recheck_text(items: Sequence[WeighedItem]) -> str:
    """Blockers worth another look."""
    lines = [f"- {w.item.id}: blocked by {_short(w.item.blocked_by or '')}" for w in items]
    return "\n".join(["Look again at what blocks these work items:", *lines])


def question_text(weighed: WeighedItem) -> str:
    """What the operator is asked when an item does not move."""
    return (
        f"Work item {weighed.item.id} was taken up again and again without moving: "
        f"{_short(weighed.item.objective)}. Tell the agent how to go on, change the item, or"
        " complete it."
    )


def expired_text(wait: WaitRecord) -> str:
    """A wait ran out."""
    return f"Nothing came in time for wait {wait.id}: {_short(wait.waiting_for)}"


def timer_text(timer: TimerRecord, *, late_by_ms: int = 0) -> str:
    """A timer came due, maybe a while ago: one tick makes up for every slot that was missed."""
    said = f"Timer {timer.id} came due: {_short(timer.summary or 'no summary given')}"
    if late_by_ms < TIMER_LATE_MS_MIN:
        return said
    return f"{said} (late_by: {timedelta(seconds=late_by_ms // SECOND_MS)})"


def _short(text: str) -> str:
    """Recorded words in a sentence of ours: on one line, nothing hidden, and bounded."""
    return quoted_line(text, chars_max=EVENT_TEXT_CHARS_MAX)
