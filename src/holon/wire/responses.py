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


class Done(Record, frozen=True, kw_only=True):
    """It is so now."""

    ok: Literal[True]
    agent_id: AgentId | None = None


class Enqueued(Record, frozen=True, kw_only=True):
    """The message is durable. `duplicate`: it already was, under the same key."""

    ok: Literal[True]
    agent_id: AgentId
    message_id: MessageId
    duplicate: bool = msgspec.field(default_factory=bool)


class WaitEnd(StrEnum):
    """Why a wait ended before the message did."""

    TIME_IS_UP = "time_is_up"
    HELD = "held"  # nothing happens to the message before `held_until`
    TOO_MANY_WAITS = "too_many_waits"
    RUNTIME_ENDS = "runtime_ends"


class HoldReason(StrEnum):
    """What keeps a message from having its turn now."""

    BUDGET_USED_UP = "budget_used_up"
    PROVIDER_DEFERRED = "provider_deferred"


class Prompted(Enqueued, frozen=True, kw_only=True):
    """The message is durable; with `wait_ms`, also what came of it by the end of the wait.

    `answered`: the message has ended, and the turn it entered has settled. `closure` is the
    agent's, as its rows stand at that moment.
    """

    answered: bool | None = None  # left out where no wait was asked for
    wait_end: WaitEnd | None = None  # where it is not answered
    ended: MessageState | None = None
    briefs: tuple[BriefRecord, ...] = ()  # that answer it, oldest first
    closure: ClosureView | None = None
    held_until: Instant | None = None
    held_by: HoldReason | None = None


class FrontLinks(Record, frozen=True, kw_only=True):
    """Where to go on from the root."""

    handshake: str
    openapi: str


class Front(Record, frozen=True, kw_only=True):
    """What is served at the root."""

    ok: Literal[True]
    name: str
    version: str
    links: FrontLinks


class Protocol(Record, frozen=True, kw_only=True):
    """Which protocol this server speaks."""

    name: str
    version: int


class AuthFacts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a caller needs in order to be let in, on the socket it came through."""

    mode: str
    required: bool


class HandshakeRuntime(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Who is there; only for a caller that was let in."""

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
    """The runtime's model, and the ones it falls back to."""

    default_model: str
    fallback_models: tuple[str, ...]


class TaskStopAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the stop set in motion. Asked a second time, it is carried out for certain."""

    ok: Literal[True]
    task_id: TaskId
    stop_requested: bool
    force_stop_requested: bool


class CallbackResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What became of a delivery."""

    agent_id: AgentId
    external_trigger_id: TriggerId
    disposition: WakeDisposition
    scope: Literal["agent"] = "agent"
    delivery_mode: TriggerDeliveryMode = TriggerDeliveryMode.WAKE_HINT


class CallbackAnswer(Record, frozen=True, kw_only=True):
    """The delivery is durable. `duplicate`: it already was, under its id, with this result."""

    ok: Literal[True]
    result: CallbackResult
    duplicate: bool = msgspec.field(default_factory=bool)


class WakeAnswer(Record, frozen=True, kw_only=True):
    """What became of a wake."""

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
    """The trigger as it is now."""

    ok: Literal[True]
    agent_id: AgentId
    external_trigger: ExternalTriggerView


def trigger_view(trigger: ExternalTrigger, *, trigger_url: str | None) -> ExternalTriggerView:
    """Return what may be shown of a trigger; its address is for the caller to leave out."""
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


def told(disposition: WakeDisposition) -> WakeDisposition:
    """Return a disposition as callers know it: a hint that waits is one with what waits already."""
    parked = disposition is WakeDisposition.PARKED
    return WakeDisposition.COALESCED if parked else disposition


class ShownHit(MemoryHit, frozen=True, kw_only=True, omit_defaults=False):
    """One search result, with every field."""


class ShownText(MemoryText, frozen=True, kw_only=True, omit_defaults=False):
    """The exact text behind a hit, with every field."""


class ShownIndex(MemoryStatus, frozen=True, kw_only=True, omit_defaults=False):
    """How an agent's index stands, and what it cannot hold."""

    notes: tuple[str, ...] = ()


class MemoryHits(Record, frozen=True, kw_only=True):
    """What was found, best first, and how the index stood."""

    results: tuple[ShownHit, ...]
    index: MemoryStatus
    notes: tuple[str, ...] = ()


class RebuildAnswer(Record, frozen=True, kw_only=True):
    """How the index stands after it was begun anew."""

    ok: Literal[True]
    index: MemoryStatus


class ReadinessAnswer(Record, frozen=True, kw_only=True):
    """Requests are taken."""

    ok: Literal[True]
    ready: bool
    pid: int
    version: str


class ShutdownAnswer(Record, frozen=True, kw_only=True):
    """The runtime has begun to end."""

    ok: Literal[True]
    message: str


_Named = Annotated[str, Meta(min_length=1, max_length=WORKSPACE_PATH_CHARS_MAX)]


class SkillKind(StrEnum):
    """Where a skill comes from."""

    BUILTIN = "builtin"
    LOCAL = "local"
    GITHUB = "github"


class InstallSkillRequest(ControlBody, frozen=True, kw_only=True):
    """Which skill: one of Holon's own, an absolute path, or `owner/repo@skill`.

    Without a kind, the form of the name decides. `force` replaces what is there, also when it was
    changed.
    """

    name: _Named
    kind: SkillKind | None = None
    copy: bool = False  # of a local skill, instead of linking to it
    force: bool = False


class UninstallSkillRequest(ControlBody, frozen=True, kw_only=True):
    """Which skill to take away. `force` also takes one that was changed or made by hand."""

    name: _Named
    force: bool = False


class SkillReceipt(Record, frozen=True, kw_only=True):
    """It is so now; the agent's next prompt shows it."""

    ok: Literal[True]
    agent_id: AgentId
    name: str
    path: str
    source_kind: str | None = None
    source: str | None = None


class BriefPage(Record, frozen=True, kw_only=True):
    """Briefs, newest first. `next_before` asks for the ones before them."""

    briefs: tuple[BriefRecord, ...]
    limit: int
    next_before: BriefId | None = None


class TaskPage(Record, frozen=True, kw_only=True):
    """Tasks: those that have not ended first. `next_after` asks for the ones that follow."""

    tasks: tuple[TaskSlimView, ...]
    limit: int
    next_after: TaskId | None = None


class TimerPage(Record, frozen=True, kw_only=True):
    """Timers: active ones first, soonest first. `next_after` asks for the ones that follow."""

    timers: tuple[TimerView, ...]
    limit: int
    next_after: TimerId | None = None


class WorkItemPage(Record, frozen=True, kw_only=True):
    """Work items: current, queued, waiting, completed. `next_after` asks for the next ones."""

    work_items: tuple[WorkItemView, ...]
    limit: int
    next_after: WorkItemId | None = None


class TimerAnswer(Record, frozen=True, kw_only=True):
    """The timer as it is now."""

    ok: Literal[True]
    timer: TimerView


class WorkItemAnswer(Record, frozen=True, kw_only=True):
    """The item as it is now."""

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
    """Where a task stands; where its output is kept, but none of it."""

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
    """What TaskInput answers: how much the task took. One that takes no input is no error."""

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
    """A task and a bounded look at what it has written."""

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
    """A look at a task's output, and whether that is all there will be."""

    retrieval_status: RetrievalStatus
    task: TaskOutputSnapshot


class WorkspaceAnswer(Record, frozen=True, kw_only=True):
    """It is so now: where the agent works, by real names, and which workspaces it has."""

    ok: Literal[True]
    agent_id: AgentId
    workspace: WorkspaceStateView
