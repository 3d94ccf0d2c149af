"""Agents: identity, loop state and the selector that names a template.

Owns:  agent identity; agent state by part (posture, focus, totals, rate state, model choice); the
       agent events (model override, dropped unseen messages, archiving); template entries and the
       three forms of a template selector. Transitions are in decide/agents/lifecycle.
Rule 1: identity is written once, at creation; only archiving changes it. State changes only through
        commits.
Rule 2: `generation` fences writers: the holder of an older number may no longer write.
Rule 3: a template is read once, when an agent is created from it; nothing refers to it afterwards.
"""

from enum import StrEnum
from typing import Final, TypeAlias

from holon.model.errors import BadInputError
from holon.model.record import Record
from holon.model.turns.turn import Closure, TurnTerminal
from holon.model.values import AgentId, Instant, MessageId, TurnId, WorkItemId

DEFAULT_TEMPLATE: Final = "holon-default"
GITHUB_ARCHIVES: Final = "https://codeload.github.com"


class AgentStatus(StrEnum):
    """What the agent's loop is doing right now."""

    BOOTING = "booting"
    AWAKE_IDLE = "awake_idle"
    AWAKE_RUNNING = "awake_running"
    AWAITING_TASK = "awaiting_task"
    ASLEEP = "asleep"
    PAUSED = "paused"
    STOPPED = "stopped"


class AgentSignal(StrEnum):
    """What may move an agent from one posture to another."""

    BOOTED = "booted"
    WOKEN = "woken"
    RUN_STARTED = "run_started"
    RUN_SETTLED = "run_settled"
    TASK_AWAITED = "task_awaited"
    RESTED = "rested"
    PAUSE_REQUESTED = "pause_requested"
    RESUME_REQUESTED = "resume_requested"
    STOP_REQUESTED = "stop_requested"


class AgentKind(StrEnum):
    """Which role an agent plays in a runtime."""

    DEFAULT = "default"
    NAMED = "named"
    CHILD = "child"


class Visibility(StrEnum):
    """Whether an agent shows up in ordinary listings."""

    PUBLIC = "public"
    PRIVATE = "private"


class Ownership(StrEnum):
    """Who is responsible for an agent."""

    SELF_OWNED = "self_owned"
    PARENT_SUPERVISED = "parent_supervised"


class ProfilePreset(StrEnum):
    """The set of capabilities an agent starts with."""

    PUBLIC_NAMED = "public_named"
    PRIVATE_CHILD = "private_child"


class IdentityStatus(StrEnum):
    """Whether the identity is in use."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class AgentIdentity(Record, frozen=True, kw_only=True):
    """The durable identity of an agent."""

    agent_id: AgentId
    kind: AgentKind
    visibility: Visibility
    ownership: Ownership
    profile_preset: ProfilePreset
    created_at: Instant
    status: IdentityStatus = IdentityStatus.ACTIVE
    parent_agent_id: AgentId | None = None
    lineage_parent_agent_id: AgentId | None = None


class AgentPosture(Record, frozen=True, kw_only=True):
    """What the loop is doing, since when and why; and until when it rests."""

    status: AgentStatus
    since: Instant
    reason: str
    sleeping_until: Instant | None = None
    last_wake_reason: str | None = None


class AgentFocus(Record, frozen=True, kw_only=True):
    """Which work item is selected, and which turn is open."""

    current_work_item_id: WorkItemId | None = None
    open_turn_id: TurnId | None = None


class AgentTotals(Record, frozen=True, kw_only=True):
    """Counters over the agent's whole life."""

    turn_index: int = 0
    message_count: int = 0
    model_round_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class TurnRateState(Record, frozen=True, kw_only=True):
    """The agent's counters of self-started turns, and its budget pause.

    `self_started_count` counts turns in a row that the runtime started by itself and that moved
    nothing; once it `gave_up`, only something from outside starts a turn. `budget_until` is the
    moment a used-up budget has room again; it may have passed.
    """

    self_started_count: int = 0
    self_started_at: Instant | None = None
    gave_up: bool = False
    budget_until: Instant | None = None


class AgentContext(Record, frozen=True, kw_only=True):
    """Which of its turns the agent still reads in full, and the recap of those before them.

    It moves only when a turn is settled; each move is an epoch. Between two moves the beginning of
    every request is the same, byte for byte.
    """

    history_from_turn: int = 1
    compression_epoch: int = 0
    recap: tuple[str, ...] = ()


class ModelChoice(Record, frozen=True, kw_only=True):
    """An agent's own model, if the runtime default is overridden."""

    override_model: str | None = None


class AgentState(Record, frozen=True, kw_only=True):
    """Everything the runtime keeps about one agent's loop."""

    identity: AgentIdentity
    generation: int
    posture: AgentPosture
    focus: AgentFocus
    totals: AgentTotals
    model: ModelChoice
    pace: TurnRateState = TurnRateState()
    last_closure: Closure | None = None
    last_terminal: TurnTerminal | None = None
    last_brief_at: Instant | None = None


class ModelOverrideChanged(
    Record, tag_field="kind", tag="agent_model_override_changed", frozen=True, kw_only=True
):
    """An agent's own model was set, or cleared when `model` is absent."""

    model: str | None = None


class UnseenLetGo(Record, tag_field="kind", tag="unseen_let_go", frozen=True, kw_only=True):
    """More came in than the agent was shown: the oldest will not be, from one to the other."""

    message_count: int
    first_message_id: MessageId
    last_message_id: MessageId


class AgentArchived(Record, tag_field="kind", tag="agent_archived", frozen=True, kw_only=True):
    """An agent is kept for its history only from here on."""

    reason: str


AgentEvent: TypeAlias = ModelOverrideChanged | UnseenLetGo | AgentArchived


class BadTemplateError(BadInputError):
    """A template selector is malformed, or its template unusable; nothing was made."""

    code = "bad_template"


class TemplateEntry(Record, frozen=True, kw_only=True):
    """One template by the name that selects it."""

    template_id: str
    summary: str = ""


class NamedTemplate(Record, frozen=True, kw_only=True):
    """A template among those of the user."""

    template_id: str


class TemplateFolder(Record, frozen=True, kw_only=True):
    """A template anywhere on this machine."""

    path: str


class GithubTree(Record, frozen=True, kw_only=True):
    """A directory of a repository at one ref."""

    owner: str
    repo: str
    ref: str
    path: str

    @property
    def url(self) -> str:
        """The address that selects it."""
        return f"https://github.com/{self.owner}/{self.repo}/tree/{self.ref}/{self.path}"


TemplateSelector: TypeAlias = NamedTemplate | TemplateFolder | GithubTree
