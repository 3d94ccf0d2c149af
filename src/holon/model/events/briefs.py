"""Operator-facing records: briefs and failure artifacts.

Owns:  briefs, failure artifacts and their bounds, and the level at which an operator should see
       each of them.
Rule 1: a brief is an explicit record made by the runtime, never inferred from text later.
Rule 2: a failure artifact carries a summary a person can act on; raw logs stay elsewhere.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from holon.model.record import Record
from holon.model.values import (
    AgentId,
    BriefId,
    Instant,
    JsonValue,
    MessageId,
    TaskId,
    TurnId,
    WorkItemId,
    WorkspaceId,
    require_json,
)


class BriefKind(StrEnum):
    """The three forms a brief takes."""

    ACK = "ack"
    RESULT = "result"
    FAILURE = "failure"


class OperatorVisibility(StrEnum):
    """How much something concerns the operator, from most to least."""

    ACTION_REQUIRED = "action_required"
    WORK_DONE = "work_done"
    TURN_RESULT = "turn_result"
    PROGRESS = "progress"
    TRACE = "trace"

    @property
    def level(self) -> int:
        """The place in the order; 1 is what most needs an operator."""
        return _LEVELS[self]


_LEVELS: Final[Mapping[OperatorVisibility, int]] = MappingProxyType(
    {visibility: number for number, visibility in enumerate(OperatorVisibility, start=1)}
)


class AttachmentKind(StrEnum):
    """What an attachment holds."""

    FILE = "file"
    LOG = "log"
    DIFF = "diff"
    IMAGE = "image"
    JSON = "json"


class BriefAttachment(Record, frozen=True, kw_only=True):
    """Something that goes with a brief: a pointer or a small value."""

    kind: AttachmentKind
    name: str
    uri: str | None = None
    value: JsonValue = None

    def __post_init__(self) -> None:
        require_json(self.value)


class FailureCategory(StrEnum):
    """Where a failure came from."""

    TRANSPORT = "transport"
    PROTOCOL = "protocol"
    RUNTIME = "runtime"
    TASK = "task"
    UNKNOWN = "unknown"


class FailureArtifact(Record, frozen=True, kw_only=True):
    """One failure in the shape every operator surface shows."""

    category: FailureCategory
    kind: str
    summary: str
    provider: str | None = None
    model_ref: str | None = None
    status: int | None = None
    task_id: TaskId | None = None
    exit_status: int | None = None
    retryable: bool = msgspec.field(default_factory=bool)
    recovery_hint: str | None = None
    source_chain: tuple[str, ...] = ()
    metadata: dict[str, str] = {}


class BriefRecord(Record, frozen=True, kw_only=True):
    """One report to the operator."""

    id: BriefId
    agent_id: AgentId
    kind: BriefKind
    created_at: Instant
    text: str
    workspace_id: WorkspaceId | None = None
    work_item_id: WorkItemId | None = None
    turn_id: TurnId | None = None
    attachments: tuple[BriefAttachment, ...] = ()
    related_message_id: MessageId | None = None
    related_task_id: TaskId | None = None
    failure: FailureArtifact | None = None
