"""Response bodies of the control plane.

Owns:  the shapes of receipts, pages and small answers, section by section: prompts and agents, the
       runtime, triggers and wakes, memory, skills, pages, tasks, workspaces. Views of records are
       built in projections/, which also decides what they contain.
Rule 1: a memory hit and a memory text have every field: what a document lacks is null, as tools
        show it.
Rule 2: the skill requests here are strict: an unknown field is refused.
Rule 3: the cursor of a page names its last record; the next page starts after it.
"""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holon.decide.tasks.commands import RetrievalStatus
from holon.model.events.briefs import BriefRecord, FailureArtifact
from holon.model.limits import WORKSPACE_PATH_CHARS_MAX
from holon.model.memory.index import MemoryStatus, MemoryText
from holon.model.memory.records import MemoryHit
from holon.model.queue import MessageState
from holon.model.record import Record
from holon.model.tasks import TaskKind, TaskStatus
from holon.model.values import (
    AgentId,
    BriefId,
    Instant,
    MessageId,
    TaskId,
    TimerId,
    TriggerId,
    WorkItemId,
)
from holon.model.wake import (
    ExternalTrigger,
    TriggerDeliveryMode,
    TriggerStatus,
    WakeDisposition,
)
from holon.projections.agents.state import TaskSlimView
from holon.projections.agents.summary import ClosureView
from holon.projections.wake import TimerView
from holon.projections.work import WorkItemView
from holon.projections.workspaces import WorkspaceStateView
from holon.wire.requests import ControlBody

_Named = Annotated[str, Meta(min_length=1, max_length=WORKSPACE_PATH_CHARS_MAX)]


class Done(Record, frozen=True, kw_only=True):
    """The request took effect."""

    ok: Literal[True]
    agent_id: AgentId | None = None


class Enqueued(Record, frozen=True, kw_only=True):
    """The message is durable. `duplicate`: it was already, under the same key."""

    ok: Literal[True]
    agent_id: AgentId
    message_id: MessageId
    duplicate: bool = msgspec.field(default_factory=bool)


class WaitEnd(StrEnum):
    """Why a wait ended before the message was finished."""

    TIME_IS_UP = "time_is_up"
    HELD = "held"  # nothing happens to the message before `held_until`
    TOO_MANY_WAITS = "too_many_waits"
    RUNTIME_ENDS = "runtime_ends"


class HoldReason(StrEnum):
    """What defers a message's turn."""

    BUDGET_USED_UP = "budget_used_up"
    PROVIDER_DEFERRED = "provider_deferred"


class Prompted(Enqueued, frozen=True, kw_only=True):
    """The message is durable; with `wait_ms`, also its outcome at the end of the wait.

    `answered`: the message is finished, and the turn it entered is settled. `closure` is the
    agent's at that moment.
    """

    answered: bool | None = None  # omitted without a wait
    wait_end: WaitEnd | None = None  # when not answered
    ended: MessageState | None = None
    briefs: tuple[BriefRecord, ...] = ()  # the answers, oldest first
    closure: ClosureView | None = None
    held_until: Instant | None = None
    held_by: HoldReason | None = None


class FrontLinks(Record, frozen=True, kw_only=True):
    """Entry points of the API."""

    handshake: str
    openapi: str


class Front(Record, frozen=True, kw_only=True):
    """The answer at the root."""

    ok: Literal[True]
    name: str
    version: str
    links: FrontLinks


class Protocol(Record, frozen=True, kw_only=True):
    """The protocol of this server."""

    name: str
    version: int


class AuthFacts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The authentication required on the socket the caller used."""

    mode: str
    required: bool


class HandshakeRuntime(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The runtime; only for an authenticated caller."""

    default_agent: AgentId
    workspace_dir: str | None
    home_dir: str
    listen: str
    advertise_url: str | None


class Handshake(Record, frozen=True, kw_only=True):
    """The first answer to any client."""

    ok: Literal[True]
    protocol: Protocol
    auth: AuthFacts
    capabilities: tuple[str, ...]
    version: str
    runtime: HandshakeRuntime | None = None


class ModelListing(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The runtime's default model, and its fallbacks."""

    default_model: str
    fallback_models: tuple[str, ...]


class TaskStopAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The effect of a stop request. A second request stops by force."""

    ok: Literal[True]
    task_id: TaskId
    stop_requested: bool
    force_stop_requested: bool


class CallbackResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The result of a delivery."""

    agent_id: AgentId
    external_trigger_id: TriggerId
    disposition: WakeDisposition
    scope: Literal["agent"] = "agent"
    delivery_mode: TriggerDeliveryMode = TriggerDeliveryMode.WAKE_HINT


class CallbackAnswer(Record, frozen=True, kw_only=True):
    """The delivery is durable. `duplicate`: it was already, under its id, with this result."""

    ok: Literal[True]
    result: CallbackResult
    duplicate: bool = msgspec.field(default_factory=bool)


class WakeAnswer(Record, frozen=True, kw_only=True):
    """The result of a wake."""

    ok: Literal[True]
    agent_id: AgentId
    disposition: WakeDisposition


class ExternalTriggerView(Record, frozen=True, kw_only=True):
    """An external trigger. Its address is a secret and is shown to the operator alone."""

    external_trigger_id: TriggerId
    target_agent_id: AgentId
    delivery_mode: TriggerDeliveryMode
    status: TriggerStatus
    created_at: Instant
    delivery_count: int
    scope: Literal["agent"] = "agent"
    revoked_at: Instant | None = None
    last_delivered_at: Instant | None = None
    trigger_url: str | None = None


class TriggerListing(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The external triggers of an agent: one, or none yet."""

    agent_id: AgentId
    external_triggers: tuple[ExternalTriggerView, ...]


class TriggerAnswer(Record, frozen=True, kw_only=True):
    """The current state of the trigger."""

    ok: Literal[True]
    agent_id: AgentId
    external_trigger: ExternalTriggerView


def trigger_view(trigger: ExternalTrigger, *, trigger_url: str | None) -> ExternalTriggerView:
    """Return the view of a trigger; the caller decides whether to include its address."""
    return ExternalTriggerView(
        external_trigger_id=trigger.external_trigger_id,
        target_agent_id=trigger.target_agent_id,
        delivery_mode=trigger.delivery_mode,
        status=trigger.status,
        created_at=trigger.created_at,
        delivery_count=trigger.delivery_count,
        revoked_at=trigger.revoked_at,
        last_delivered_at=trigger.last_delivered_at,
        trigger_url=trigger_url,
    )


def public_disposition(disposition: WakeDisposition) -> WakeDisposition:
    """Return the public disposition: a stored hint is reported as coalesced."""
    parked = disposition is WakeDisposition.PARKED
    return WakeDisposition.COALESCED if parked else disposition


class ShownHit(MemoryHit, frozen=True, kw_only=True, omit_defaults=False):
    """One search result, with every field."""


class ShownText(MemoryText, frozen=True, kw_only=True, omit_defaults=False):
    """The exact text behind a hit, with every field."""


class ShownIndex(MemoryStatus, frozen=True, kw_only=True, omit_defaults=False):
    """The state of an agent's index, with notes on what it lacks."""

    notes: tuple[str, ...] = ()


class MemoryHits(Record, frozen=True, kw_only=True):
    """Search results, best first, and the state of the index."""

    results: tuple[ShownHit, ...]
    index: MemoryStatus
    notes: tuple[str, ...] = ()


class RebuildAnswer(Record, frozen=True, kw_only=True):
    """The state of the index after its rebuild began."""

    ok: Literal[True]
    index: MemoryStatus


class ReadinessAnswer(Record, frozen=True, kw_only=True):
    """The runtime accepts requests."""

    ok: Literal[True]
    ready: bool
    pid: int
    version: str


class ShutdownAnswer(Record, frozen=True, kw_only=True):
    """The runtime has begun its shutdown."""

    ok: Literal[True]
    message: str


class SkillKind(StrEnum):
    """Where a skill comes from."""

    BUILTIN = "builtin"
    LOCAL = "local"
    GITHUB = "github"


class InstallSkillRequest(ControlBody, frozen=True, kw_only=True):
    """The skill to install: a built-in one, an absolute path, or `owner/repo@skill`.

    Without a kind, the form of the name decides. `force` replaces an existing folder, even a
    modified one.
    """

    name: _Named
    kind: SkillKind | None = None
    copy: bool = False  # of a local skill, instead of linking to it
    force: bool = False


class UninstallSkillRequest(ControlBody, frozen=True, kw_only=True):
    """The skill to uninstall. `force` also removes one that was modified or created manually."""

    name: _Named
    force: bool = False


class SkillReceipt(Record, frozen=True, kw_only=True):
    """The request took effect; the agent's next prompt shows it."""

    ok: Literal[True]
    agent_id: AgentId
    name: str
    path: str
    source_kind: str | None = None
    source: str | None = None


class BriefPage(Record, frozen=True, kw_only=True):
    """Briefs, newest first. `next_before` is the cursor of the next page."""

    briefs: tuple[BriefRecord, ...]
    limit: int
    next_before: BriefId | None = None


class TaskPage(Record, frozen=True, kw_only=True):
    """Tasks: running ones first. `next_after` is the cursor of the next page."""

    tasks: tuple[TaskSlimView, ...]
    limit: int
    next_after: TaskId | None = None


class TimerPage(Record, frozen=True, kw_only=True):
    """Timers: active ones first, soonest first. `next_after` is the cursor of the next page."""

    timers: tuple[TimerView, ...]
    limit: int
    next_after: TimerId | None = None


class WorkItemPage(Record, frozen=True, kw_only=True):
    """Work items: current, queued, waiting, completed. `next_after` is the next page's cursor."""

    work_items: tuple[WorkItemView, ...]
    limit: int
    next_after: WorkItemId | None = None


class TimerAnswer(Record, frozen=True, kw_only=True):
    """The current state of the timer."""

    ok: Literal[True]
    timer: TimerView


class WorkItemAnswer(Record, frozen=True, kw_only=True):
    """The current state of the item."""

    ok: Literal[True]
    work_item: WorkItemView


class TaskAnswer(Record, frozen=True, kw_only=True):
    """The task that was started."""

    ok: Literal[True]
    task: TaskSlimView


class TaskCommandView(Record, frozen=True, kw_only=True):
    """How a command task was started, and how its command ended."""

    cmd: str
    cmd_digest: str
    login: bool
    tty: bool
    terminal_reentry: bool
    promoted_from_exec_command: bool
    accepts_input: bool
    cmd_preview: str | None = None
    workdir: str | None = None
    shell: str | None = None
    output_path: str | None = None
    result_summary: str | None = None
    exit_status: int | None = None
    input_target: str | None = None


class TaskStatusView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The status of a task, with the path of its output but none of its text."""

    task_id: TaskId
    kind: TaskKind
    status: TaskStatus
    created_at: Instant
    updated_at: Instant
    wait_policy: str
    summary: str | None = None
    parent_message_id: MessageId | None = None
    work_item_id: WorkItemId | None = None
    command: TaskCommandView | None = None


class TaskInputAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How much input the task accepted. A task that accepts none is no error."""

    ok: Literal[True]
    task_id: TaskId
    task: TaskStatusView
    accepted_input: bool
    input_target: str | None
    bytes_written: int
    summary_text: str


class TaskArtifact(Record, frozen=True, kw_only=True):
    """A file that holds output."""

    path: str


class TaskOutputSnapshot(Record, frozen=True, kw_only=True):
    """A task with a bounded excerpt of its output."""

    task_id: TaskId
    kind: TaskKind
    status: TaskStatus
    output_preview: str
    output_truncated: bool
    artifacts: tuple[TaskArtifact, ...]
    summary: str | None = None
    output_artifact: int | None = None
    result_summary: str | None = None
    exit_status: int | None = None
    failure_artifact: FailureArtifact | None = None


class TaskOutputAnswer(Record, frozen=True, kw_only=True):
    """An excerpt of a task's output, and whether the output is final."""

    retrieval_status: RetrievalStatus
    task: TaskOutputSnapshot


class WorkspaceAnswer(Record, frozen=True, kw_only=True):
    """The agent's active and attached workspaces after the request, by real paths."""

    ok: Literal[True]
    agent_id: AgentId
    workspace: WorkspaceStateView
