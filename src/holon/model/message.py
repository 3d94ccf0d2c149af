"""The message envelope: the one form in which anything may influence an agent.

Owns:  the envelope, its kinds, priorities, bodies and queue states.
Rule 1: typed fields carry meaning; `metadata` is stored for people and never consulted.
Rule 2: a message ends in exactly one terminal queue state, once.
"""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from holon.model.brief import BriefAttachment
from holon.model.continuation import TriggerKind
from holon.model.ids import AgentId, MessageId, TaskId, WaitId, WorkItemId
from holon.model.instant import Instant
from holon.model.json_value import JsonValue, require_json, require_unicode
from holon.model.provenance import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    Origin,
    TrustLevel,
)
from holon.model.record import Record


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
        """Take the earlier name of the first band for what it means."""
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
    """Whether a body says something: any JSON, or text that is not blank."""
    match body:
        case JsonBody():
            return True
        case TextBody(text=text) | BriefBody(text=text):
            return bool(text.strip())


class FollowupChain(Record, frozen=True, kw_only=True):
    """Where a follow-up an agent left itself stands among those that one outside message led to.

    Set by the runtime from the message whose turn asked for it, never from what a model says.
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
