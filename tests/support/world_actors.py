"""The people and machines around a simulated host.

Owns:  performing planned actions against a live host, and the notebook of acknowledgements and
       refusals. The notebook survives crashes; the host does not.
Rule 1: an action is retried with the same key until it is answered; what was acknowledged must
        never be lost.
Rule 2: a refusal is an answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, assert_never

from holon.decide.work.items import WorkItemEdit
from holon.model.commits import AdvanceTask
from holon.model.errors import RefusedError, StoreFullError
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    Priority,
    TextBody,
    WebhookOrigin,
)
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.values import AgentId, MessageId, TaskId, TimerId, WorkItemId, later
from holon.model.wake import TriggerDelivery, WakeHint
from holon.model.work import PlanStatus
from holon.runtime.host import Host
from tests.support import world_plan as plan
from tests.support.manual_clock import ManualClock


@dataclass(slots=True)
class Notebook:
    """What the outside world was told, and by whom it was refused."""

    acked: dict[str, MessageId] = field(default_factory=dict)
    owners: dict[MessageId, AgentId] = field(default_factory=dict)
    timers: list[TimerId] = field(default_factory=list)
    items: list[WorkItemId] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    cursors: dict[AgentId, int] = field(default_factory=dict)


TRIGGER_BASE_URL: Final = "http://127.0.0.1:7878"  # nothing listens there


class WorldTriggerKey:
    """The key of a world's triggers: the same in all its lives."""

    def key(self) -> bytes:
        """The key."""
        return b"k" * 32

    def register_secret(self, name: str, secret: str) -> None:
        """Nothing is hidden in a world."""


def _nobody(by_ms: int) -> None:
    """Nobody looks at the wall."""


class Actors:
    """Carries out planned actions against one life of the host."""

    def __init__(
        self,
        host: Host,
        clock: ManualClock,
        notebook: Notebook,
        *,
        jumped: Callable[[int], None] = _nobody,
    ) -> None:
        """`jumped` hears by how much the wall clock was set."""
        self._jumped = jumped
        self._host = host
        self._clock = clock
        self._notebook = notebook

    async def perform(self, number: int, action: plan.Action) -> None:
        """Do one action until it is answered."""
        while True:
            try:
                await self._act(action)
            except RefusedError as refused:
                self._notebook.refusals.append(refused.refusal.code.value)
            except StoreFullError:
                await self._clock.sleep_until(later(self._clock.now(), by_ms=1_000))
                continue
            self._notebook.done.add(number)
            return

    async def _act(self, action: plan.Action) -> None:
        match action:
            case plan.Prompt() | plan.Webhook():
                await self._send(action)
            case plan.ArmTimer() | plan.CancelTimer():
                await self._handle_timer(action)
            case plan.SendHint():
                await self._send_hint(action)
            case plan.Steer(agent=agent, verb=verb):
                await self._steer(AgentId(agent), verb)
            case plan.AddWork() | plan.HandleWork():
                await self._handle_work(action)
            case plan.StartTask() | plan.ReportTask():
                await self._handle_task(action)
            case plan.JumpClock(by_ms=by_ms):
                self._clock.jump(by_ms)
                self._jumped(by_ms)
            case _:
                assert_never(action)

    async def _send(self, action: plan.Prompt | plan.Webhook) -> None:
        prompted = isinstance(action, plan.Prompt)
        request = IngressRequest(
            agent_id=AgentId(action.agent),
            kind=MessageKind.OPERATOR_PROMPT if prompted else MessageKind.WEBHOOK_EVENT,
            origin=OperatorOrigin() if prompted else WebhookOrigin(source="sim"),
            body=TextBody(text=action.text),
            surface=DeliverySurface.CLI_PROMPT if prompted else DeliverySurface.HTTP_WEBHOOK,
            admission=AdmissionContext.LOCAL_PROCESS
            if prompted
            else AdmissionContext.PUBLIC_UNAUTHENTICATED,
            priority=action.priority if isinstance(action, plan.Prompt) else Priority.NORMAL,
            idempotency_key=action.key,
        )
        receipt = await self._host.admit(request)
        self._notebook.owners[receipt.message_id] = request.agent_id
        earlier = self._notebook.acked.setdefault(action.key, receipt.message_id)
        if earlier != receipt.message_id:
            self._notebook.problems.append(
                f"P2 key {action.key} gave {earlier} and {receipt.message_id}"
            )

    async def _handle_timer(self, action: plan.ArmTimer | plan.CancelTimer) -> None:
        match action:
            case plan.ArmTimer(agent=agent, after_ms=after_ms, every_ms=every_ms):
                timer = await self._host.timers.create(
                    AgentId(agent), after_ms=after_ms, every_ms=every_ms, summary="sim"
                )
                self._notebook.timers.append(timer.id)
            case plan.CancelTimer(choice=choice):
                if self._notebook.timers:
                    chosen = self._notebook.timers[choice % len(self._notebook.timers)]
                    await self._host.timers.cancel(chosen)

    async def _send_hint(self, action: plan.SendHint) -> None:
        if action.through_trigger is not None:
            await self._deliver(action, action.through_trigger)
            return
        now = self._clock.now()
        await self._host.wake.submit(
            WakeHint(
                agent_id=AgentId(action.agent),
                source_key=action.source,
                reason="changed",
                created_at=now,
                updated_at=now,
                body=action.body,
            )
        )

    async def _deliver(self, action: plan.SendHint, delivery_id: str) -> None:
        triggers = self._host.triggers
        url = triggers.url_of(await triggers.ensure(AgentId(action.agent)))
        assert url is not None, "worlds have a trigger key and an address"
        token = url.rpartition("/")[2]
        delivery = TriggerDelivery(delivery_key=delivery_id, source=action.source, body=action.body)
        target = await triggers.open(token, delivery)
        if target is None:
            self._notebook.problems.append(f"P6 the trigger of {action.agent} lost its address")
            return
        receipt = await triggers.earlier(token, delivery, target)
        if receipt is None:
            await triggers.deliver(token, delivery, target)

    async def _steer(self, agent_id: AgentId, verb: str) -> None:
        match verb:
            case "stop":
                await self._host.control.stop(agent_id)
            case "pause":
                await self._host.control.pause(agent_id)
            case "resume":
                await self._host.control.resume(agent_id)
            case _:
                await self._host.control.abort_run(agent_id)

    async def _handle_work(self, action: plan.AddWork | plan.HandleWork) -> None:
        match action:
            case plan.AddWork(agent=agent, objective=objective):
                item = await self._host.work.create(AgentId(agent), objective=objective)
                self._notebook.items.append(item.id)
            case plan.HandleWork() if self._notebook.items:
                chosen = self._notebook.items[action.choice % len(self._notebook.items)]
                await self._handle_item(chosen, action)
            case plan.HandleWork():
                return

    async def _handle_item(self, item_id: WorkItemId, action: plan.HandleWork) -> None:
        work = self._host.work
        match action.verb:
            case "focus":
                await work.focus(item_id)
            case "block":
                await work.edit(
                    item_id,
                    WorkItemEdit(),
                    blocked_by="someone",
                    recheck_after_ms=action.recheck_after_ms,
                )
            case "unblock":
                await work.edit(item_id, WorkItemEdit(), blocked_by=None)
            case "edit":
                await work.edit(
                    item_id, WorkItemEdit(objective=f"changed at {action.recheck_after_ms}")
                )
            case "ask":  # an item that needs the operator keeps its agent waiting for one
                await work.edit(item_id, WorkItemEdit(plan_status=PlanStatus.NEEDS_INPUT))
            case _:
                await work.complete(item_id)

    async def _handle_task(self, action: plan.StartTask | plan.ReportTask) -> None:
        match action:
            case plan.StartTask(agent=agent, task_id=task_id, waited_for=waited_for):
                now = self._clock.now()
                task = TaskRecord(
                    id=TaskId(task_id),
                    agent_id=AgentId(agent),
                    kind=TaskKind.COMMAND_TASK,
                    status=TaskStatus.QUEUED,
                    created_at=now,
                    updated_at=now,
                    summary="simulated task",
                )
                await self._host.tasks.open(task)
                if waited_for:
                    await self._host.tasks.wait_for(task.id)
            case plan.ReportTask(task_id=task_id, status=status):
                task_row = await self._host.tasks.find(TaskId(task_id))
                if task_row is not None:
                    advance = AdvanceTask(
                        agent_id=task_row.agent_id,
                        task_id=task_row.id,
                        status=TaskStatus(status),
                        result_summary=f"{task_id} {status}",
                    )
                    await self._host.tasks.report(advance)
