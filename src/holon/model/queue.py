"""Messages: the envelope, its provenance and its place in the queue.

Owns:  origins, delivery surfaces, admission contexts, authority classes and trust levels; the
       envelope, its kinds, priorities, bodies and queue states; the ingress request and the
       admission receipt; webhook settings, which name a secret and never hold it.
Rule 1: ingress sets the provenance labels from how a request arrived. What a caller claims about
        itself is kept apart in `claimed_*` and can only lead to a refusal.
Rule 2: the labels travel with the content into prompt, transcript, memory and events, unchanged.
Rule 3: typed fields carry meaning; `metadata` is stored for people and never consulted.
Rule 4: a message ends in exactly one terminal queue state, once.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from holon.model.events.briefs import BriefAttachment
from holon.model.record import Record
from holon.model.turns.turn import TriggerKind
from holon.model.values import (
    AgentId,
    Instant,
    JsonValue,
    MessageId,
    TaskId,
    TimerId,
    WaitId,
    WorkItemId,
    require_json,
    require_unicode,
)

CLI_CLIENT: Final = "holon-cli"  # how the command line names itself to the control plane


class OperatorOrigin(Record, tag_field="kind", tag="operator", frozen=True, kw_only=True):
    """The primary owner of the agent."""

    actor_id: str | None = None


class ChannelOrigin(Record, tag_field="kind", tag="channel", frozen=True, kw_only=True):
    """A participant on an external communication surface; not the operator."""

    channel_id: str
    sender_id: str | None = None


class WebhookOrigin(Record, tag_field="kind", tag="webhook", frozen=True, kw_only=True):
    """A machine outside, posting structured events."""

    source: str
    event_type: str | None = None


class CallbackOrigin(Record, tag_field="kind", tag="callback", frozen=True, kw_only=True):
    """An outside system using an external ingress capability."""

    descriptor_id: str
    source: str | None = None


class TimerOrigin(Record, tag_field="kind", tag="timer", frozen=True, kw_only=True):
    """A durable timer that came due."""

    timer_id: TimerId


class SystemOrigin(Record, tag_field="kind", tag="system", frozen=True, kw_only=True):
    """The runtime itself, naming the part that sent it."""

    subsystem: str


class TaskOrigin(Record, tag_field="kind", tag="task", frozen=True, kw_only=True):
    """A background task rejoining its agent."""

    task_id: TaskId


Origin: TypeAlias = (
    OperatorOrigin
    | ChannelOrigin
    | WebhookOrigin
    | CallbackOrigin
    | TimerOrigin
    | SystemOrigin
    | TaskOrigin
)


class DeliverySurface(StrEnum):
    """The ingress that produced a message."""

    CLI_PROMPT = "cli_prompt"
    RUN_ONCE = "run_once"
    HTTP_PUBLIC_ENQUEUE = "http_public_enqueue"
    HTTP_WEBHOOK = "http_webhook"
    HTTP_CALLBACK_ENQUEUE = "http_callback_enqueue"
    HTTP_CALLBACK_WAKE = "http_callback_wake"
    HTTP_CONTROL_PROMPT = "http_control_prompt"
    REMOTE_OPERATOR_TRANSPORT = "remote_operator_transport"
    TIMER_SCHEDULER = "timer_scheduler"
    RUNTIME_SYSTEM = "runtime_system"
    TASK_REJOIN = "task_rejoin"


class AdmissionContext(StrEnum):
    """How the caller proved the right to use that surface.

    An external trigger capability is the address of a trigger, or the secret a configured source of
    webhooks signs with.
    """

    PUBLIC_UNAUTHENTICATED = "public_unauthenticated"
    CONTROL_AUTHENTICATED = "control_authenticated"
    OPERATOR_TRANSPORT_AUTHENTICATED = "operator_transport_authenticated"
    EXTERNAL_TRIGGER_CAPABILITY = "external_trigger_capability"
    LOCAL_PROCESS = "local_process"
    RUNTIME_OWNED = "runtime_owned"


class AuthorityClass(StrEnum):
    """How content is to be treated: as instruction, as signal or as evidence."""

    OPERATOR_INSTRUCTION = "operator_instruction"
    RUNTIME_INSTRUCTION = "runtime_instruction"
    INTEGRATION_SIGNAL = "integration_signal"
    EXTERNAL_EVIDENCE = "external_evidence"


class TrustLevel(StrEnum):
    """The older label, kept on the wire for readers that know no authority class."""

    TRUSTED_OPERATOR = "trusted_operator"
    TRUSTED_SYSTEM = "trusted_system"
    TRUSTED_INTEGRATION = "trusted_integration"
    UNTRUSTED_EXTERNAL = "untrusted_external"


class MessageKind(StrEnum):
    """What a message represents."""

    OPERATOR_PROMPT = "operator_prompt"
    WEBHOOK_EVENT = "webhook_event"
    CALLBACK_EVENT = "callback_event"
    CHANNEL_EVENT = "channel_event"
    TIMER_TICK = "timer_tick"
    SYSTEM_TICK = "system_tick"
    INTERNAL_FOLLOWUP = "internal_followup"
    TASK_STATUS = "task_status"
    TASK_RESULT = "task_result"
    CONTROL = "control"
    BRIEF_ACK = "brief_ack"
    BRIEF_RESULT = "brief_result"


class Priority(StrEnum):
    """A scheduling hint: which band a message queues in. Never a trust signal."""

    INTERJECT = "interject"
    NEXT = "next"
    NORMAL = "normal"
    BACKGROUND = "background"

    @classmethod
    def _missing_(cls, value: object) -> "Priority | None":
        """Accept the earlier name of the first band."""
        return cls.INTERJECT if value == "interrupt" else None

    @property
    def band(self) -> int:
        """The band's place in the queue; 0 is served first."""
        return _BANDS[self]


_BANDS: Final = {
    Priority.INTERJECT: 0,
    Priority.NEXT: 1,
    Priority.NORMAL: 2,
    Priority.BACKGROUND: 3,
}


class MessageState(StrEnum):
    """Where a message stands in its queue."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    PROCESSED = "processed"
    INTERJECTED = "interjected"
    ABORTED = "aborted"
    DROPPED = "dropped"

    @property
    def is_terminal(self) -> bool:
        """Whether the message has ended."""
        return self not in (MessageState.QUEUED, MessageState.CLAIMED)


class TextBody(Record, tag_field="type", tag="text", frozen=True, kw_only=True):
    """Plain text."""

    text: str

    def __post_init__(self) -> None:
        require_unicode(self.text)


class JsonBody(Record, tag_field="type", tag="json", frozen=True, kw_only=True):
    """Structured content, kept structured."""

    value: JsonValue

    def __post_init__(self) -> None:
        require_json(self.value)


class BriefBody(Record, tag_field="type", tag="brief", frozen=True, kw_only=True):
    """A brief carried as a message."""

    text: str
    title: str | None = None
    attachments: tuple[BriefAttachment, ...] = ()

    def __post_init__(self) -> None:
        require_unicode(self.text)


MessageBody: TypeAlias = TextBody | JsonBody | BriefBody


def is_contentful(body: MessageBody) -> bool:
    """Whether a body has content: any JSON, or text that is not blank."""
    match body:
        case JsonBody():
            return True
        case TextBody(text=text) | BriefBody(text=text):
            return bool(text.strip())


class FollowupChain(Record, frozen=True, kw_only=True):
    """Where a follow-up an agent left itself stands among those that one outside message led to.

    Set by the runtime from the message whose turn requested it, never from a model's text.
    """

    root_id: MessageId  # the message that was no follow-up
    number: int  # the first one is 1


class MessageEnvelope(Record, frozen=True, kw_only=True):
    """One admitted input, with its provenance."""

    id: MessageId
    agent_id: AgentId
    created_at: Instant
    kind: MessageKind
    origin: Origin
    trust: TrustLevel
    authority_class: AuthorityClass
    priority: Priority
    body: MessageBody
    delivery_surface: DeliverySurface
    admission_context: AdmissionContext
    trigger_kind: TriggerKind | None = None
    work_item_id: WorkItemId | None = None
    task_id: TaskId | None = None
    wait_id: WaitId | None = None
    source_refs: dict[str, str] = {}
    metadata: JsonValue = None
    correlation_id: str | None = None
    causation_id: str | None = None
    followup: FollowupChain | None = None

    def __post_init__(self) -> None:
        if self.metadata is not None:
            require_json(self.metadata)


class QueueEntry(Record, frozen=True, kw_only=True):
    """A message together with its place and state in the queue."""

    seq: int
    state: MessageState
    message: MessageEnvelope
    settled_reason: str | None = None
    # It waits in the queue although it has had a turn.
    was_put_off: bool = msgspec.field(default_factory=bool)


class IngressRequest(Record, frozen=True, kw_only=True):
    """One request to become a message."""

    agent_id: AgentId
    kind: MessageKind
    origin: Origin
    body: MessageBody
    surface: DeliverySurface
    admission: AdmissionContext
    priority: Priority = Priority.NORMAL
    idempotency_key: str | None = None
    work_item_id: WorkItemId | None = None  # honoured from runtime-owned ingress only
    task_id: TaskId | None = None
    wait_id: WaitId | None = None
    tick_key: str | None = None
    source_refs: dict[str, str] = {}  # ids beyond the origin's; the runtime's own ingress only
    metadata: JsonValue = None
    correlation_id: str | None = None
    causation_id: str | None = None
    followup: FollowupChain | None = None  # honoured from runtime-owned ingress only
    authority_max: AuthorityClass | None = None  # what led to this is worth no more
    claimed_trust: TrustLevel | None = None
    claimed_authority: AuthorityClass | None = None

    def __post_init__(self) -> None:
        if self.metadata is not None:
            require_json(self.metadata)


class AdmissionReceipt(Record, frozen=True, kw_only=True):
    """The answer to an admitted request. `duplicate` means the key had been used before."""

    agent_id: AgentId
    message_id: MessageId
    duplicate: bool = False


class SignatureForm(StrEnum):
    """How a source signs its requests."""

    STANDARD = "standard"  # Standard Webhooks: id, moment and body
    GITHUB = "github"  # X-Hub-Signature-256: the body alone


class WebhookSetting(Record, frozen=True, kw_only=True):
    """The variable that holds a source's secret, or else the credential profile that does."""

    secret_env: str | None = None
    secret_profile: str | None = None
    signature: SignatureForm = SignatureForm.STANDARD
