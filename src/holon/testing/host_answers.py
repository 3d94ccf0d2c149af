"""Carrying out the commands a host process is given.

Owns:  the way from a command to the host's desks and back to an answer. It holds no state of its
       own: what it answers, the host has made durable.
Rule 1: provenance is filled in here from the kind of command, never from what a line claims.
"""

from collections.abc import Callable
from typing import assert_never

from holon.model.commit import AdvanceTask
from holon.model.errors import BadInputError, HolonError
from holon.model.ids import (
    AgentId,
    TaskId,
    TimerId,
    WorkItemId,
    parse_agent_id,
    parse_record_id,
)
from holon.model.ingress import IngressRequest
from holon.model.json_value import JsonValue
from holon.model.message import MessageKind, TextBody
from holon.model.provenance import (
    AdmissionContext,
    DeliverySurface,
    OperatorOrigin,
    WebhookOrigin,
)
from holon.model.refusal import RefusedError
from holon.model.task import TaskKind, TaskRecord, TaskStatus
from holon.model.wake import WakeHint
from holon.runtime.host import Host
from holon.runtime.retention_keeper import RetentionKeeper
from holon.runtime.services import Services
from holon.testing import host_commands as ask
from holon.testing.armed_failpoints import ArmedFailpoints
from holon.wire.codec import json_of


class Answerer:
    """Performs commands against one life of a host."""

    def __init__(
        self,
        host: Host,
        services: Services,
        failpoints: ArmedFailpoints,
        *,
        tell: Callable[[ask.Note], None],
    ) -> None:
        self._host = host
        self._services = services
        self._failpoints = failpoints
        self._tell = tell

    async def answer(self, command: ask.Command) -> JsonValue:
        """Do what is asked and return what there is to say, or raise HolonError."""
        match command:
            case ask.Prompt() | ask.Webhook():
                return json_of(await self._host.admit(_request_of(command)))
            case ask.Hint() | ask.ArmTimer() | ask.CancelTimer():
                return await self._wake(command)
            case ask.AddWork() | ask.MoveWork():
                return await self._work(command)
            case ask.OpenTask() | ask.ReportTask():
                return await self._task(command)
            case ask.Steer(agent=agent, verb=verb):
                await self._steer(parse_agent_id(agent), verb)
                return None
            case ask.Follow() | ask.Briefs() | ask.Prune() | ask.Status() | ask.Quit():
                return await self._look(command)
            case _:
                assert_never(command)

    async def _wake(self, command: ask.Hint | ask.ArmTimer | ask.CancelTimer) -> JsonValue:
        match command:
            case ask.Hint(agent=agent, source=source, body=body):
                now = self._services.clock.now()
                hint = WakeHint(
                    agent_id=AgentId(agent),
                    source_key=source,
                    reason="changed",
                    created_at=now,
                    updated_at=now,
                    body=body,
                )
                return {"disposition": (await self._host.wake.submit(hint)).value}
            case ask.ArmTimer(agent=agent):
                timer = await self._host.timers.create(
                    AgentId(agent),
                    after_ms=command.after_ms,
                    every_ms=command.every_ms,
                    summary=command.summary,
                )
                return {"timer_id": timer.id}
            case ask.CancelTimer(timer=timer_id):
                await self._host.timers.cancel(TimerId(timer_id))
                return None

    async def _work(self, command: ask.AddWork | ask.MoveWork) -> JsonValue:
        work = self._host.work
        match command:
            case ask.AddWork(agent=agent, objective=objective):
                item = await work.create(AgentId(agent), objective=objective)
                return {"work_item_id": item.id}
            case ask.MoveWork(item=item_id, verb="focus"):
                await work.focus(WorkItemId(item_id))
            case ask.MoveWork(item=item_id, verb="block"):
                await work.block(
                    WorkItemId(item_id),
                    blocked_by="someone",
                    recheck_after_ms=command.recheck_after_ms,
                )
            case ask.MoveWork(item=item_id, verb="unblock"):
                await work.unblock(WorkItemId(item_id))
            case ask.MoveWork(item=item_id, verb="complete"):
                await work.complete(WorkItemId(item_id))
            case ask.MoveWork(verb=verb):
                raise BadInputError(f"a work item cannot {verb!r}")
        return None

    async def _task(self, command: ask.OpenTask | ask.ReportTask) -> JsonValue:
        task_id = TaskId(parse_record_id(command.task, what="task id"))
        if isinstance(command, ask.ReportTask):
            task = await self._host.tasks.find(task_id)
            if task is None:
                return {"known": False}
            advance = AdvanceTask(
                agent_id=task.agent_id,
                task_id=task_id,
                status=command.status,
                result_summary=f"{task_id} {command.status}",
            )
            return {"known": True, "moved": await self._host.tasks.report(advance)}
        now = self._services.clock.now()
        task = TaskRecord(
            id=task_id,
            agent_id=parse_agent_id(command.agent),
            kind=TaskKind.COMMAND_TASK,
            status=TaskStatus.QUEUED,
            created_at=now,
            updated_at=now,
            summary="a task of the drill",
        )
        await self._host.tasks.open(task)
        return {"wait_id": await self._host.tasks.wait_for(task_id) if command.wait else None}

    async def _steer(self, agent_id: AgentId, verb: str) -> None:
        control = self._host.control
        match verb:
            case "stop":
                await control.stop(agent_id)
            case "pause":
                await control.pause(agent_id)
            case "resume":
                await control.resume(agent_id)
            case "abort":
                await control.abort_run(agent_id)
            case _:
                raise BadInputError(f"nobody can {verb!r} an agent")

    async def _look(
        self, command: ask.Follow | ask.Briefs | ask.Prune | ask.Status | ask.Quit
    ) -> JsonValue:
        match command:
            case ask.Follow(agent=agent, after=after):
                async for event in self._host.events.follow(parse_agent_id(agent), after=after):
                    self._tell(ask.Note(note="event", data=json_of(event)))
                return None
            case ask.Briefs(agent=agent, limit=limit):
                briefs = await self._services.store.reads.briefs(AgentId(agent), limit=limit)
                return [json_of(brief) for brief in briefs]
            case ask.Prune():
                await RetentionKeeper(self._services).prune_all()
                return None
            case ask.Status():
                return json_of(await self._status())
            case ask.Quit():
                return None

    async def _status(self) -> ask.HostStatus:
        """What is left to do. What may start something is read before what it would start."""
        reads, now = self._services.store.reads, self._services.clock.now()
        overdue = [
            *(due.timer.id for due in await reads.due_timers(now, limit=1)),
            *(wait.id for wait in await reads.due_waits(now, limit=1)),
        ]
        due_at = await reads.next_due_at(after=now)
        return ask.HostStatus(
            overdue=tuple(overdue),
            next_due_in_ms=None if due_at is None else int((due_at - now).total_seconds() * 1_000),
            open_task_count=len(await reads.open_tasks()),
            restless=tuple(await reads.restless(now=now)),
            open_turns=tuple(await reads.agents_with_open_turns()),
            running_count=self._host.running_count,
            rescue_count=self._host.rescue_count,
            visits={point.value: count for point, count in self._failpoints.visits.items()},
        )


def refused_by(error: HolonError) -> ask.Refused:
    """Return an error as the answer shows it; a refusal shows its own code."""
    if isinstance(error, RefusedError):
        refusal = error.refusal
        return ask.Refused(
            code=refusal.code.value,
            message=refusal.message,
            hint=refusal.hint,
            resume_path=refusal.resume_path,
        )
    return ask.Refused(code=error.code, message=error.message, hint=error.hint)


def _request_of(command: ask.Prompt | ask.Webhook) -> IngressRequest:
    match command:
        case ask.Prompt():
            return IngressRequest(
                agent_id=AgentId(command.agent),
                kind=MessageKind.OPERATOR_PROMPT,
                origin=OperatorOrigin(),
                body=TextBody(text=command.text),
                surface=DeliverySurface.CLI_PROMPT,
                admission=AdmissionContext.LOCAL_PROCESS,
                priority=command.priority,
                idempotency_key=command.key,
            )
        case ask.Webhook():
            return IngressRequest(
                agent_id=AgentId(command.agent),
                kind=MessageKind.WEBHOOK_EVENT,
                origin=WebhookOrigin(source="drill"),
                body=TextBody(text=command.text),
                surface=DeliverySurface.HTTP_WEBHOOK,
                admission=AdmissionContext.PUBLIC_UNAUTHENTICATED,
                idempotency_key=command.key,
            )
