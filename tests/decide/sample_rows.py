"""Small, plain rows for the tests of decisions: one valid value each, to be varied by keyword."""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from holon.model.agents import (
    AgentFocus,
    AgentIdentity,
    AgentKind,
    AgentPosture,
    AgentState,
    AgentStatus,
    AgentTotals,
    IdentityStatus,
    ModelChoice,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.events.reads import AdmissionTarget, QueueHead, WeighedItem
from holon.model.queue import (
    AdmissionContext,
    CallbackOrigin,
    ChannelOrigin,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TextBody,
    TimerOrigin,
    WebhookOrigin,
)
from holon.model.values import AgentId, MessageId, TaskId, TimerId, WaitId, WorkItemId
from holon.model.wake import WaitKind, WaitRecord, WaitState, WakeHint
from holon.model.work import ActivationMemory, WorkItemRecord

NOW: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AGENT_ID: Final = AgentId("main")
MESSAGE_ID: Final = MessageId("msg_1")

ORIGINS: Final[tuple[Origin, ...]] = (
    OperatorOrigin(actor_id="ada"),
    ChannelOrigin(channel_id="general", sender_id="bob"),
    WebhookOrigin(source="forge", event_type="push"),
    CallbackOrigin(descriptor_id="trig_1", source="ci"),
    TimerOrigin(timer_id=TimerId("timer_1")),
    SystemOrigin(subsystem="scheduler"),
    TaskOrigin(task_id=TaskId("task_1")),
)


def name_of(value: object) -> str:
    """A readable test id: the class of an origin, the value of an enum, the text of the rest."""
    return type(value).__name__ if isinstance(value, msgspec.Struct) else str(value)


def seconds(count: float) -> timedelta:
    """A span, for moments around NOW."""
    return timedelta(seconds=count)


def agent_in(
    status: AgentStatus, *, identity_status: IdentityStatus = IdentityStatus.ACTIVE
) -> AgentState:
    """An agent in this posture, with nothing in its past."""
    return AgentState(
        identity=AgentIdentity(
            agent_id=AGENT_ID,
            kind=AgentKind.DEFAULT,
            visibility=Visibility.PUBLIC,
            ownership=Ownership.SELF_OWNED,
            profile_preset=ProfilePreset.PUBLIC_NAMED,
            created_at=NOW,
            status=identity_status,
        ),
        generation=1,
        posture=AgentPosture(status=status, since=NOW, reason="test"),
        focus=AgentFocus(),
        totals=AgentTotals(),
        model=ModelChoice(),
    )


def target_in(status: AgentStatus, *, queued_count: int = 0) -> AdmissionTarget:
    """What the door knows of an agent in this posture."""
    return AdmissionTarget(status=status, is_archived=False, queued_count=queued_count)


IDLE_TARGET: Final = target_in(AgentStatus.AWAKE_IDLE)
PROMPT: Final = IngressRequest(
    agent_id=AGENT_ID,
    kind=MessageKind.OPERATOR_PROMPT,
    origin=ORIGINS[0],
    body=TextBody(text="hello"),
    surface=DeliverySurface.HTTP_CONTROL_PROMPT,
    admission=AdmissionContext.CONTROL_AUTHENTICATED,
)
PUBLIC_EVENT: Final = IngressRequest(
    agent_id=AGENT_ID,
    kind=MessageKind.CHANNEL_EVENT,
    origin=ORIGINS[1],
    body=TextBody(text="hello"),
    surface=DeliverySurface.HTTP_PUBLIC_ENQUEUE,
    admission=AdmissionContext.PUBLIC_UNAUTHENTICATED,
)
SYSTEM_TICK: Final = IngressRequest(
    agent_id=AGENT_ID,
    kind=MessageKind.SYSTEM_TICK,
    origin=ORIGINS[5],
    body=TextBody(text="look again"),
    surface=DeliverySurface.RUNTIME_SYSTEM,
    admission=AdmissionContext.RUNTIME_OWNED,
)
# One request that is admitted, for every kind that can come in.
ADMISSIBLE: Final[tuple[IngressRequest, ...]] = tuple(
    msgspec.structs.replace(PROMPT, kind=kind, origin=origin, admission=admission, surface=surface)
    for kind, origin, admission, surface in (
        (
            MessageKind.OPERATOR_PROMPT,
            ORIGINS[0],
            AdmissionContext.LOCAL_PROCESS,
            DeliverySurface.CLI_PROMPT,
        ),
        (
            MessageKind.CHANNEL_EVENT,
            ORIGINS[1],
            AdmissionContext.PUBLIC_UNAUTHENTICATED,
            DeliverySurface.HTTP_PUBLIC_ENQUEUE,
        ),
        (
            MessageKind.WEBHOOK_EVENT,
            ORIGINS[2],
            AdmissionContext.PUBLIC_UNAUTHENTICATED,
            DeliverySurface.HTTP_WEBHOOK,
        ),
        (
            MessageKind.CALLBACK_EVENT,
            ORIGINS[3],
            AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY,
            DeliverySurface.HTTP_CALLBACK_ENQUEUE,
        ),
        (
            MessageKind.TIMER_TICK,
            ORIGINS[4],
            AdmissionContext.RUNTIME_OWNED,
            DeliverySurface.TIMER_SCHEDULER,
        ),
        (
            MessageKind.SYSTEM_TICK,
            ORIGINS[5],
            AdmissionContext.RUNTIME_OWNED,
            DeliverySurface.RUNTIME_SYSTEM,
        ),
        (
            MessageKind.INTERNAL_FOLLOWUP,
            ORIGINS[5],
            AdmissionContext.RUNTIME_OWNED,
            DeliverySurface.RUNTIME_SYSTEM,
        ),
        (
            MessageKind.TASK_STATUS,
            ORIGINS[6],
            AdmissionContext.RUNTIME_OWNED,
            DeliverySurface.TASK_REJOIN,
        ),
        (
            MessageKind.TASK_RESULT,
            ORIGINS[6],
            AdmissionContext.RUNTIME_OWNED,
            DeliverySurface.TASK_REJOIN,
        ),
        (
            MessageKind.CONTROL,
            ORIGINS[0],
            AdmissionContext.CONTROL_AUTHENTICATED,
            DeliverySurface.HTTP_CONTROL_PROMPT,
        ),
    )
)

ITEM: Final = WorkItemRecord(
    id=WorkItemId("work_1"),
    agent_id=AGENT_ID,
    objective="mend the roof",
    created_at=NOW,
    updated_at=NOW,
)
MEMORY: Final = ActivationMemory(
    agent_id=AGENT_ID,
    work_item_id=ITEM.id,
    revision_seen=1,
    no_progress_count=0,
    last_at=NOW,
    not_before=NOW,
)
HINT: Final = WakeHint(
    agent_id=AGENT_ID, source_key="ci", reason="build", created_at=NOW, updated_at=NOW
)


def wait_of(kind: WaitKind, state: WaitState = WaitState.ACTIVE) -> WaitRecord:
    """A wait of this kind on ITEM."""
    return WaitRecord(
        id=WaitId(f"wait_{kind}"),
        agent_id=AGENT_ID,
        kind=kind,
        waiting_for="something",
        created_at=NOW,
        deadline_at=NOW + seconds(3600),
        state=state,
        work_item_id=ITEM.id,
    )


def weighed(
    name: str = "work_1", *, activation: ActivationMemory | None = None, blocked: bool = False
) -> WeighedItem:
    """An open item, runnable unless it is blocked."""
    blocked_by = "the weather" if blocked else None
    item = msgspec.structs.replace(ITEM, id=WorkItemId(name), blocked_by=blocked_by)
    return WeighedItem(item=item, activation=activation)


HEAD: Final = QueueHead(seq=1, message_id=MESSAGE_ID, priority=PROMPT.priority)
