"""One command in the background, as long as this process looks after it.

Owns:  what is known of a running command task besides its row: the live command, who wants it to
       end, and the moment its end is durable.
Rule 1: a request to end is never taken back; an agent's stop outranks a task's.
"""

from typing import Final

import anyio
import msgspec

from holon.decide.command_end import EndAsked
from holon.model.ids import TurnId
from holon.model.record import Record
from holon.model.task import TaskRecord, TaskStatus
from holon.ports.shell import RunningCommand
from holon.ports.store_reads import StoreReads


class OfferedBy(Record, frozen=True, kw_only=True):
    """The call whose result is about to record the task."""

    turn_id: TurnId
    effect_id: str


class CommandTask:
    """A command task that has a live owner."""

    def __init__(
        self, task: TaskRecord, command: RunningCommand, *, offered_by: OfferedBy | None = None
    ) -> None:
        self.task: Final = task
        self.command: Final = command
        self.offered_by = offered_by  # nobody, once the row exists
        self.ended: Final = anyio.Event()
        self.asked = EndAsked.NOBODY
        if task.status is TaskStatus.CANCELLING:
            self.asked = EndAsked.TASK_STOP
        self._news = anyio.Event()

    @property
    def as_it_stands(self) -> TaskRecord:
        """The record, with the status it has while it runs here."""
        if self.asked is EndAsked.NOBODY:
            return self.task
        return msgspec.structs.replace(self.task, status=TaskStatus.CANCELLING)

    def tell_news(self) -> None:
        """Rows of the task's agent have changed."""
        self._news.set()

    def about_to_look(self) -> anyio.Event:
        """Return what will be set by news that comes from now on."""
        self._news = anyio.Event()
        return self._news

    def ask_end(self, by: EndAsked) -> None:
        """Note who wants the end."""
        if self.asked is not EndAsked.AGENT_STOP:
            self.asked = by


async def became_durable(held: CommandTask, reads: StoreReads) -> bool:
    """Wait for the task's row; False when the call that wanted it was answered without it."""
    while held.offered_by is not None:
        news = held.about_to_look()
        answered = await _is_answered(held.offered_by, reads)
        if await reads.task(held.task.id) is not None:
            held.offered_by = None
        elif answered:
            return False
        else:
            await news.wait()
    return True


async def _is_answered(call: OfferedBy, reads: StoreReads) -> bool:
    log = await reads.turn_log(call.turn_id)
    return log is None or any(
        recorded.call.effect_id == call.effect_id and recorded.receipt is not None
        for recorded in log.calls
    )
