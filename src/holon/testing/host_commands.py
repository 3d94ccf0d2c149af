"""What may be asked of a host process, one JSON object to a line.

Owns:  the commands and the shape of what comes back. {"id": 7, "do": "prompt", "agent": "ada",
       "text": "hello", "key": "k1"} is answered by {"id": 7, "ok": true, "result": {…}} or by
       {"id": 7, "ok": false, "refusal": {…}}; lines with a `note` were not asked for.
Rule 1: an answer is an acknowledgement: what it says is durable when it is written.
Rule 2: `is_final` tells a caller who repeats a command until it is settled whether to stop.
"""

from typing import TypeAlias

from holon.model.json_value import JsonValue
from holon.model.message import Priority
from holon.model.record import Record
from holon.model.task import TaskStatus


class Prompt(Record, tag_field="do", tag="prompt", frozen=True, kw_only=True):
    """The operator says something."""

    id: int
    agent: str
    text: str
    key: str | None = None
    priority: Priority = Priority.NORMAL


class Webhook(Record, tag_field="do", tag="webhook", frozen=True, kw_only=True):
    """A machine outside posts an event, with no proof of who it is."""

    id: int
    agent: str
    text: str
    key: str | None = None


class Hint(Record, tag_field="do", tag="hint", frozen=True, kw_only=True):
    """Something outside says that it changed."""

    id: int
    agent: str
    source: str
    body: JsonValue = None


class ArmTimer(Record, tag_field="do", tag="arm_timer", frozen=True, kw_only=True):
    """Arm a timer."""

    id: int
    agent: str
    after_ms: int
    every_ms: int | None = None
    summary: str | None = None


class CancelTimer(Record, tag_field="do", tag="cancel_timer", frozen=True, kw_only=True):
    """Cancel a timer."""

    id: int
    timer: str


class AddWork(Record, tag_field="do", tag="add_work", frozen=True, kw_only=True):
    """Open a work item."""

    id: int
    agent: str
    objective: str


class MoveWork(Record, tag_field="do", tag="move_work", frozen=True, kw_only=True):
    """Focus, block, unblock or complete a work item."""

    id: int
    item: str
    verb: str
    recheck_after_ms: int | None = None


class OpenTask(Record, tag_field="do", tag="open_task", frozen=True, kw_only=True):
    """Record a background task; with `wait` its agent waits for it."""

    id: int
    agent: str
    task: str
    wait: bool = False


class ReportTask(Record, tag_field="do", tag="report_task", frozen=True, kw_only=True):
    """Say how a background task is doing."""

    id: int
    task: str
    status: TaskStatus


class Steer(Record, tag_field="do", tag="steer", frozen=True, kw_only=True):
    """Stop, pause, resume or abort an agent."""

    id: int
    agent: str
    verb: str


class Follow(Record, tag_field="do", tag="follow", frozen=True, kw_only=True):
    """Print the events of an agent as notes, from a cursor on; answered when that ends."""

    id: int
    agent: str
    after: int = 0


class Briefs(Record, tag_field="do", tag="briefs", frozen=True, kw_only=True):
    """Read the newest briefs of an agent."""

    id: int
    agent: str
    limit: int = 20


class Prune(Record, tag_field="do", tag="prune", frozen=True, kw_only=True):
    """Let retention run now."""

    id: int


class Status(Record, tag_field="do", tag="status", frozen=True, kw_only=True):
    """Say whether anything is left to do."""

    id: int


class Quit(Record, tag_field="do", tag="quit", frozen=True, kw_only=True):
    """End in good order."""

    id: int


Command: TypeAlias = (
    Prompt
    | Webhook
    | Hint
    | ArmTimer
    | CancelTimer
    | AddWork
    | MoveWork
    | OpenTask
    | ReportTask
    | Steer
    | Follow
    | Briefs
    | Prune
    | Status
    | Quit
)


class HostStatus(Record, frozen=True, kw_only=True):
    """Whether anything is left to do, as the rows say it."""

    overdue: tuple[str, ...]
    next_due_in_ms: int | None
    open_task_count: int
    restless: tuple[str, ...]
    open_turns: tuple[str, ...]
    running_count: int
    rescue_count: int
    visits: dict[str, int]

    def is_idle(self, *, horizon_ms: int) -> bool:
        """Whether nothing runs, waits to run, or comes due within the horizon."""
        busy = self.overdue or self.restless or self.open_turns or self.running_count
        due = self.next_due_in_ms is not None and self.next_due_in_ms <= horizon_ms
        return not busy and not due


class Refused(Record, frozen=True, kw_only=True):
    """Why a command was declined."""

    code: str
    message: str
    hint: str | None = None
    resume_path: str | None = None


class Answer(Record, frozen=True, kw_only=True):
    """What came of a command; `id` is absent when the line could not be read."""

    ok: bool
    id: int | None = None
    result: JsonValue = None
    refusal: Refused | None = None

    @property
    def is_final(self) -> bool:
        """Whether asking again would be of no use."""
        return self.refusal is None or self.refusal.code not in _PASSING


_PASSING = frozenset({"storage_full", "storage_busy", "storage_closed", "busy", "shutting_down"})


class Note(Record, frozen=True, kw_only=True):
    """A line nobody asked for: `ready` once, `event` for every event that is followed."""

    note: str
    data: JsonValue = None
