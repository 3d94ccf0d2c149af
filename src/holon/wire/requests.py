"""Request bodies of the control plane, of public enqueue and of wake.

Owns:  the JSON a caller may send, route by route.
Rule 1: decoding is strict: an unknown field is refused, so that a typo is noticed and an
        unsupported claim is never silently accepted.
Rule 2: every text is bounded, here or by the receiving service: a refusal may quote its input.
Rule 3: `trust` may be stated in any of them, and only as the operator's, which it is. It has no
        effect, since authority comes from the ingress surface: any other value would be ignored,
        and is therefore refused.
Rule 4: what a public caller claims about itself has fields of its own, so that it can be refused by
        name instead of being overlooked.
"""

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from holon.model.errors import BadInputError
from holon.model.limits import (
    COMMAND_YIELD_MS_MAX,
    ID_CHARS_MAX,
    LABEL_CHARS_MAX,
    OBJECTIVE_CHARS_MAX,
    PROMPT_WAIT_MS_MAX,
    TIMER_DURATION_MS_MAX,
    TIMER_DURATION_MS_MIN,
    TIMER_INTERVAL_MS_MIN,
    TODO_ITEMS_COUNT_MAX,
    TODO_TEXT_CHARS_MAX,
    TOOL_OUTPUT_SETTING_TOKENS_MAX,
    WORKSPACE_PATH_CHARS_MAX,
)
from holon.model.queue import (
    AuthorityClass,
    JsonBody,
    MessageBody,
    MessageKind,
    Origin,
    Priority,
    TextBody,
    TrustLevel,
)
from holon.model.record import Record
from holon.model.values import JsonValue
from holon.model.work import PlanStatus, TodoState

Text = Annotated[str, Meta(min_length=1)]
Label = Annotated[str, Meta(min_length=1, max_length=LABEL_CHARS_MAX)]
Objective = Annotated[str, Meta(min_length=1, max_length=OBJECTIVE_CHARS_MAX)]
RecordId = Annotated[str, Meta(max_length=ID_CHARS_MAX)]
Path = Annotated[str, Meta(max_length=WORKSPACE_PATH_CHARS_MAX)]


class NoBody(Record, frozen=True, kw_only=True):
    """An empty object."""


class TrustNotClaimableError(BadInputError):
    """A control request claims a trust other than the operator's."""

    code = "trust_not_claimable"
    hint = (
        "leave trust out: control requests are always the operator's; send messages of others to"
        " /agents/{agent_id}/enqueue instead"
    )

    def __init__(self) -> None:
        super().__init__("a control request is always trusted_operator", field="trust")


class ControlBody(Record, frozen=True, kw_only=True):
    """The common part of control requests."""

    trust: Literal["trusted_operator"] | None = None


class PromptRequest(ControlBody, frozen=True, kw_only=True):
    """A prompt of the operator to an agent."""

    text: Text
    interject: bool = False  # into the running turn, at its next safe point
    # Answer once the message has ended, or after so long; without it, as soon as it is queued.
    wait_ms: Annotated[int, Meta(ge=1, le=PROMPT_WAIT_MS_MAX)] | None = None


class DebugPromptRequest(ControlBody, frozen=True, kw_only=True):
    """The prompt to preview: for this text, or for the next message."""

    text: Text | None = None


class CreateAgentRequest(ControlBody, frozen=True, kw_only=True):
    """How to create an agent."""

    template: Path | None = None  # a path, an id or an address


class AbortRequest(ControlBody, frozen=True, kw_only=True):
    """The run to abort; by default the current one."""

    run_id: RecordId | None = None


class EffortOfAgentError(BadInputError):
    """A reasoning effort was requested for one agent; it is a setting of a provider."""

    code = "reasoning_effort_unsupported"
    hint = "set providers.<id>.reasoning_effort in the configuration, or leave it out here"

    def __init__(self) -> None:
        super().__init__("an agent has no reasoning effort of its own", field="reasoning_effort")


class ModelRequest(ControlBody, frozen=True, kw_only=True):
    """The model an agent uses from its next turn on."""

    model: Text
    reasoning_effort: str | None = None  # declared, so that it can be refused by name

    def require_supported(self) -> None:
        """Raise EffortOfAgentError when a reasoning effort is requested."""
        if self.reasoning_effort is not None:
            raise EffortOfAgentError


class AgentAction(StrEnum):
    """A lifecycle action on an agent."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"


class ControlRequest(ControlBody, frozen=True, kw_only=True):
    """Start, stop, pause or resume an agent."""

    action: AgentAction


class TaskRequest(ControlBody, frozen=True, kw_only=True):
    """A command to run in the background, for an agent and inside its execution root."""

    summary: Label
    cmd: Text
    workdir: Path | None = None
    shell: Path | None = None
    login: bool = False
    tty: bool = False
    accepts_input: bool | None = None  # default: with a terminal only
    # Stored with the task, as for an agent's own command that outlasted its call.
    yield_time_ms: Annotated[int, Meta(ge=0, le=COMMAND_YIELD_MS_MAX)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=TOOL_OUTPUT_SETTING_TOKENS_MAX)] | None = None


class TaskInputRequest(ControlBody, frozen=True, kw_only=True):
    """Text for a task's input, with a newline where Enter is meant."""

    input: Text


class BadTimerError(BadInputError):
    """A timer is specified in no way, or in two."""

    code = "bad_request"
    hint = "give duration_ms, with interval_ms to repeat it; or expression, with a zone"


class TimerRequest(ControlBody, frozen=True, kw_only=True):
    """When a timer fires: after a duration, then at intervals, or by a cron expression."""

    duration_ms: Annotated[int, Meta(ge=TIMER_DURATION_MS_MIN, le=TIMER_DURATION_MS_MAX)] | None = (
        None
    )
    interval_ms: Annotated[int, Meta(ge=TIMER_INTERVAL_MS_MIN, le=TIMER_DURATION_MS_MAX)] | None = (
        None
    )
    expression: Label | None = None
    zone: Label | None = None  # of the expression; default: UTC
    summary: Label | None = None

    def require_one_form(self) -> None:
        """Raise BadTimerError unless exactly one form is used, and completely."""
        if (self.duration_ms is None) == (self.expression is None):
            raise BadTimerError("a timer needs a duration or an expression, not both")
        if self.expression is None and self.zone is not None:
            raise BadTimerError("a zone requires an expression")
        if self.duration_ms is None and self.interval_ms is not None:
            raise BadTimerError("an interval requires a duration")


class AttachRequest(ControlBody, frozen=True, kw_only=True):
    """The directory to work in: an absolute path on the machine of the runtime."""

    path: Annotated[str, Meta(min_length=1, max_length=WORKSPACE_PATH_CHARS_MAX)]


class DetachRequest(ControlBody, frozen=True, kw_only=True):
    """The workspace to detach."""

    workspace_id: Annotated[str, Meta(min_length=1, max_length=ID_CHARS_MAX)]


class WorkItemRequest(ControlBody, frozen=True, kw_only=True):
    """A new work item for an agent's queue."""

    objective: Objective


class TodoPart(Record, frozen=True, kw_only=True):
    """One line of a checklist."""

    text: Annotated[str, Meta(min_length=1, max_length=TODO_TEXT_CHARS_MAX)]
    state: TodoState = TodoState.PENDING


class WorkItemPatch(ControlBody, frozen=True, kw_only=True):
    """The changes of an item; omitted fields stay. A null blocker clears it."""

    objective: Objective | None = None
    plan_status: PlanStatus | None = None
    todo_list: Annotated[tuple[TodoPart, ...], Meta(max_length=TODO_ITEMS_COUNT_MAX)] | None = None
    blocked_by: Label | UnsetType | None = UNSET
    recheck_after_ms: Annotated[int, Meta(ge=1, le=TIMER_DURATION_MS_MAX)] | None = None


class BadEnqueueError(BadInputError):
    """The content of a public message is missing, or given more than once."""

    code = "bad_request"
    hint = "give exactly one of body, text and json"


class EnqueueRequest(Record, frozen=True, kw_only=True):
    """A message from outside: its content under one of three names, and its origin."""

    kind: MessageKind | None = None
    priority: Priority = Priority.NORMAL
    body: TextBody | JsonBody | None = None
    text: str | None = None
    json: JsonValue | UnsetType = UNSET
    metadata: JsonValue = None
    correlation_id: Label | None = None
    causation_id: Label | None = None
    origin: Origin | None = None
    trust: TrustLevel | None = None
    authority_class: AuthorityClass | None = None

    def content(self) -> MessageBody:
        """Return the one content; raises BadEnqueueError unless there is exactly one."""
        given: list[MessageBody] = []
        if self.body is not None:
            given.append(self.body)
        if self.text is not None:
            given.append(TextBody(text=self.text))
        if not isinstance(self.json, UnsetType):
            given.append(JsonBody(value=self.json))
        if len(given) != 1:
            raise BadEnqueueError(f"{len(given)} contents were given")
        return given[0]


class WakeRequest(ControlBody, frozen=True, kw_only=True):
    """Why an agent should be woken."""

    reason: Label
    source: Label | None = None
    correlation_id: Label | None = None
    causation_id: Label | None = None
