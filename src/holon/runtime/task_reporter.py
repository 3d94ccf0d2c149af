"""What becomes of a command task, told to the desk.

Owns:  turning the end of a command into the end of its task, and the patience this takes.
Rule 1: a report is repeated until it is recorded or cannot matter any more; the desk's commit makes
        a repeat harmless.
Rule 2: a task whose output cannot be looked at ends all the same, without it.
Rule 3: a task is over when it is told as ended: what its command left running has no name any more,
        and is ended before the result is.
Rule 4: a result is freed of secrets before it is kept: it goes to the model.
"""

from collections.abc import Sequence

import msgspec

from holon.decide.bounded_text import transcript_of
from holon.decide.command_end import LEFTOVERS_ENDED, end_of_task
from holon.decide.task_lifecycle import is_terminal
from holon.model.command import CommandExit, OutputSpan
from holon.model.commit import AdvanceTask
from holon.model.ids import TaskId
from holon.model.limits import ESTIMATED_TOKEN_BYTES, STORE_RETRY_MS_MIN, TASK_OUTPUT_TOKENS
from holon.model.refusal import RefusalCode, RefusedError
from holon.model.task import TaskRecord, TaskStatus
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.ports.redactor import Redactor
from holon.ports.task_control import StopRequest
from holon.runtime.command_boundary import leftovers_ended, spared
from holon.runtime.command_task import CommandTask
from holon.runtime.decided_commit import patiently
from holon.runtime.task_desk import TaskDesk
from holon.tools.command_output import looked_at


class TaskReporter:
    """Reports for one host's command tasks."""

    def __init__(
        self,
        desk: TaskDesk,
        *,
        clock: Clock,
        redactor: Redactor,
        journal: Journal,
    ) -> None:
        self._clock = clock
        self._redactor = redactor
        self._journal = journal
        self._desk = desk

    async def end(self, held: CommandTask, ended: CommandExit) -> None:
        """Record how a task ended, with its result message; what it left running ends with it."""
        had_leftovers = await leftovers_ended(self._journal, held)
        redactor = self._redactor
        budget = TASK_OUTPUT_TOKENS * ESTIMATED_TOKEN_BYTES
        spans: Sequence[OutputSpan] = ()
        with spared(
            self._journal,
            "the output of a task cannot be looked at; it is reported without",
            agent_id=held.task.agent_id,
            task_id=held.task.id,
        ):
            spans = looked_at(held.command, redactor, bytes_max=budget)
        named = msgspec.structs.replace(held.task, summary=redactor.redact(held.task.summary or ""))
        output = transcript_of(spans, bytes_max=budget).text
        if had_leftovers:
            output = f"{output.rstrip()}\n[{LEFTOVERS_ENDED}]".lstrip()
        await self._report(end_of_task(named, ended, asked=held.asked, output=output))

    async def running(self, task: TaskRecord) -> None:
        """Record that the command of a queued task runs."""
        await self._report(
            AdvanceTask(agent_id=task.agent_id, task_id=task.id, status=TaskStatus.RUNNING)
        )

    async def cancelling(self, task: TaskRecord) -> None:
        """Record that a task was asked to end."""
        await self._report(
            AdvanceTask(agent_id=task.agent_id, task_id=task.id, status=TaskStatus.CANCELLING)
        )

    async def cancel_unowned(self, task_id: TaskId) -> StopRequest:
        """End a task on the spot that nobody runs anything for."""
        task = await self._desk.find(task_id)
        if task is None or is_terminal(task.status):
            return StopRequest(stop_requested=False)
        await self._report(
            AdvanceTask(
                agent_id=task.agent_id,
                task_id=task.id,
                status=TaskStatus.CANCELLED,
                result_summary=f"{task.summary or task.kind.value}: nothing ran for it any more",
            )
        )
        return StopRequest(stop_requested=True)

    async def _report(self, advance: AdvanceTask) -> None:
        """Have the desk record it, however full the disk and however busy the rows are."""
        clock = self._clock
        while True:
            try:
                await patiently(lambda: self._desk.report(advance), clock=clock)
            except RefusedError as refused:
                if refused.refusal.code is not RefusalCode.BUSY:
                    self._journal.note(
                        "task_report_refused",
                        refused.refusal.message,
                        level=LogLevel.WARNING,
                        agent_id=advance.agent_id,
                        task_id=advance.task_id,
                    )
                    return
                await clock.sleep_for(STORE_RETRY_MS_MIN)
            else:
                return
