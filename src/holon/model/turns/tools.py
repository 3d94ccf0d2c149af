"""Tools as the model sees them, and the record of each execution.

Owns:  tool specs, calls with their durable state, outcomes and the error envelope.
Rule 1: a call is recorded as started before it runs and has exactly one result afterwards.
Rule 2: a result the model should read is a value (ToolOk, ToolRefused); a raised error is a bug.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from holon.model.record import Record
from holon.model.values import AgentId, CallId, Instant, JsonValue, TurnId, WorkItemId, require_json


class FreeformGrammar(Record, frozen=True, kw_only=True):
    """A tool that takes plain text where the wire allows it: the text goes into `argument`."""

    argument: str
    syntax: str
    definition: str


class ToolSpec(Record, frozen=True, kw_only=True):
    """A tool as it is offered to a model."""

    name: str
    description: str
    input_schema: JsonValue
    mutates: bool = False  # a truncated call of such a tool is refused, never guessed
    freeform: FreeformGrammar | None = None


class ToolCallState(StrEnum):
    """Where a call stands."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class ToolError(Record, frozen=True, kw_only=True):
    """Why a tool did not, in the envelope every failure shares."""

    kind: str
    message: str
    hint: str | None = None
    field: str | None = None
    retryable: bool = msgspec.field(default_factory=bool)
    details: JsonValue = None

    def __post_init__(self) -> None:
        require_json(self.details)


class ToolOk(Record, tag_field="status", tag="success", frozen=True, kw_only=True):
    """The tool did; `result` is what the model reads."""

    result: JsonValue
    summary_text: str | None = None
    ends_turn: bool = False
    sleep_reason: str | None = None
    completes_work_item_id: WorkItemId | None = None
    notes: tuple[str, ...] = ()  # what the model should know beside the result

    def __post_init__(self) -> None:
        require_json(self.result)


class ToolRefused(Record, tag_field="status", tag="error", frozen=True, kw_only=True):
    """The tool failed; the model is given the reason and a hint."""

    error: ToolError


ToolOutcome: TypeAlias = ToolOk | ToolRefused


class ToolCallRecord(Record, frozen=True, kw_only=True):
    """One tool call of one round. `effect_id` is unique here; `call_id` is the provider's."""

    effect_id: str
    call_id: CallId
    agent_id: AgentId
    turn_id: TurnId
    round: int
    position: int
    name: str
    input: JsonValue
    state: ToolCallState
    started_at: Instant
    finished_at: Instant | None = None
    work_item_id: WorkItemId | None = None

    def __post_init__(self) -> None:
        require_json(self.input)


class ToolLatency(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How long the calls of one tool took, over an agent's whole life."""

    tool_name: str
    call_count: int
    total_ms: int
    max_ms: int
    last_ms: int


def effect_id_of(turn_id: TurnId, *, round_number: int, position: int) -> str:
    """Return the id under which a call's effect happens at most once."""
    return f"{turn_id}.{round_number}.{position}"
