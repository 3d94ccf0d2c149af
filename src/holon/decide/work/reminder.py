"""Work reminders: when a model is reminded of its current work item, and the text.

Owns:  the threshold, the cooldown, the bounded text, and the commit that makes it part of the turn.
Rule 1: a reminder is due after many rounds in a row in which no work item was changed, and not
        again before the cooldown is over. It follows tool results only, never a cut answer or an
        operator interjection.
Rule 2: the reminder is a transcript entry, durable before the model reads it. It only appends to
        the conversation, and a resumed turn reads the same.
Rule 3: it counts as no progress, and asks for an update only where something has really changed.
Rule 4: it is bounded. If it does not fit its own budget, or the model's prompt, it is skipped, and
        the log says why.
"""

from datetime import datetime
from typing import Final, TypeAlias

from holon.decide.turns.commits import LaneLease, entry_of
from holon.decide.turns.step import TurnState
from holon.model.commits import AppendTranscript, Change, Commit, RecordEvent
from holon.model.limits import (
    ESTIMATED_TOKEN_BYTES,
    LABEL_CHARS_MAX,
    PLAN_PREVIEW_LISTED_CHARS_MAX,
)
from holon.model.record import Record
from holon.model.text_size import one_line, utf8_bytes
from holon.model.turns.transcript import WorkReminder
from holon.model.turns.turn import TurnRecord
from holon.model.work import (
    ReminderObstacle,
    ReminderPolicy,
    TodoItem,
    TodoState,
    WorkItemRecord,
    WorkReminderSkipped,
)

HEADER: Final = "[Runtime: a reminder of your current work item]"
REQUEST: Final = (
    "Nothing was recorded about it for a while. If there was material progress, a change of scope,"
    " a blocker or a finished step, record it now; if not, just go on. This asks for no answer."
)
_ELLIPSIS: Final = "…"


class ReminderFacts(Record, frozen=True, kw_only=True):
    """A due reminder: the item, and how full the next prompt is without it."""

    item: WorkItemRecord
    prompt_tokens: int = 0  # an estimate
    prompt_tokens_max: int | None = None  # None when it is unknown


class Remind(Record, tag=True, frozen=True, kw_only=True):
    """Add this text."""

    text: str


class SkipReminder(Record, tag=True, frozen=True, kw_only=True):
    """Add no reminder."""

    obstacle: ReminderObstacle


ReminderDecision: TypeAlias = Remind | SkipReminder


def is_reminder_due(state: TurnState, policy: ReminderPolicy) -> bool:
    """Whether so many rounds have passed that the model should be reminded now."""
    if policy.rounds_count < 1 or not state.calls or state.interjected:
        return False
    if state.untouched_round_count < policy.rounds_count:
        return False
    reminded_at = state.reminded_at_round
    return reminded_at is None or is_cooled_down(reminded_at, state.round_count, policy)


def is_cooled_down(before: int, round_count: int, policy: ReminderPolicy) -> bool:
    """Whether enough rounds have passed since the one before."""
    return round_count - before >= policy.cooldown_rounds_count


def decide_reminder(facts: ReminderFacts, policy: ReminderPolicy) -> ReminderDecision:
    """Return the reminder text, or why none is given."""
    bytes_max = policy.tokens_max * ESTIMATED_TOKEN_BYTES
    text = _text(facts.item, bytes_max=bytes_max)
    if text is None:
        return SkipReminder(obstacle=ReminderObstacle.BUDGET_TOO_SMALL)
    tokens = utf8_bytes(text) // ESTIMATED_TOKEN_BYTES + 1
    if (
        facts.prompt_tokens_max is not None
        and facts.prompt_tokens + tokens > facts.prompt_tokens_max
    ):
        return SkipReminder(obstacle=ReminderObstacle.PROMPT_BUDGET)
    return Remind(text=text)


class ReminderContext(Record, frozen=True, kw_only=True):
    """Where in a turn the reminder belongs."""

    lease: LaneLease
    turn: TurnRecord
    after_round: int
    position: int


def reminder_commit(
    place: ReminderContext, item: WorkItemRecord, decision: ReminderDecision, *, now: datetime
) -> Commit:
    """Make the reminder part of the turn, or record that it was left out."""
    word = "remind" if isinstance(decision, Remind) else "unreminded"
    return Commit(
        commit_id=f"{word}:{place.turn.turn_id}:{place.after_round}",
        at=now,
        changes=(_change(place, item, decision, now=now),),
        expects=(place.lease.fence,),
    )


def _change(
    place: ReminderContext, item: WorkItemRecord, decision: ReminderDecision, *, now: datetime
) -> Change:
    match decision:
        case Remind(text=text):
            previous = WorkReminder(work_item_id=item.id, after_round=place.after_round, text=text)
            return AppendTranscript(
                entry=entry_of(place.turn, position=place.position, at=now, data=previous)
            )
        case SkipReminder(obstacle=obstacle):
            skipped = WorkReminderSkipped(
                turn_id=place.turn.turn_id,
                work_item_id=item.id,
                after_round=place.after_round,
                obstacle=obstacle,
            )
            return RecordEvent(agent_id=place.turn.agent_id, event=skipped)


def _text(item: WorkItemRecord, *, bytes_max: int) -> str | None:
    """The reminder: always the request and the item's name, then as much of the item as fits."""
    lines = [HEADER, REQUEST, f"work item {item.id}, plan {item.plan_status.value}"]
    chars_left = bytes_max - utf8_bytes("\n".join(lines))
    if chars_left < 0:
        return None
    for line in _details(item):
        short = _cut(line, bytes_max=chars_left - 1)
        if short is None:
            break
        lines.append(short)
        chars_left -= utf8_bytes(short) + 1
    return "\n".join(lines)


def _details(item: WorkItemRecord) -> list[str]:
    """The item's fields, most relevant first; finished todos are left out."""
    open_todos = [todo for todo in item.todo_list if todo.state is not TodoState.COMPLETED]
    lines = [f"objective: {one_line(item.objective, chars_max=LABEL_CHARS_MAX)}"]
    if item.blocked_by is not None:
        lines.append(f"blocked by: {one_line(item.blocked_by, chars_max=LABEL_CHARS_MAX)}")
    lines.extend(_todo_line(todo) for todo in sorted(open_todos, key=_is_pending))
    if (plan := item.plan_artifact) is not None:
        preview = one_line(plan.preview, chars_max=PLAN_PREVIEW_LISTED_CHARS_MAX)
        lines.append(f"plan in {plan.path}: {preview}")
    return lines


def _is_pending(todo: TodoItem) -> bool:
    return todo.state is TodoState.PENDING


def _todo_line(todo: TodoItem) -> str:
    return f"todo ({todo.state.value}): {one_line(todo.text, chars_max=LABEL_CHARS_MAX)}"


def _cut(line: str, *, bytes_max: int) -> str | None:
    """The line, or its beginning, within so many bytes; nothing when too little would be left."""
    if utf8_bytes(line) <= bytes_max:
        return line
    kept = line.encode()[: max(0, bytes_max - len(_ELLIPSIS.encode()))].decode(errors="ignore")
    name = line.partition(":")[0]
    return kept + _ELLIPSIS if len(kept) > len(name) + 1 else None
