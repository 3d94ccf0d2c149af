"""What a trigger amounts to for an agent in a given closure.

Owns:  trigger kinds, continuation classes and the resolution record.
Rule 1: a liveness-only trigger never reaches the model; every other class does. `Reentry` and
        `LivenessOnly` are separate shapes, so "liveness only but visible" cannot be written.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from holon.model.closure import ClosureOutcome, WaitingReason
from holon.model.record import Record, no_entries


class TriggerKind(StrEnum):
    """The normalized reason an agent is looked at."""

    OPERATOR_INPUT = "operator_input"
    TASK_RESULT = "task_result"
    EXTERNAL_EVENT = "external_event"
    TIMER_FIRE = "timer_fire"
    INTERNAL_FOLLOWUP = "internal_followup"
    SYSTEM_TICK = "system_tick"


class ReentryClass(StrEnum):
    """Why a trigger may reach the model."""

    RESUME_EXPECTED_WAIT = "resume_expected_wait"
    RESUME_OVERRIDE = "resume_override"
    LOCAL_CONTINUATION = "local_continuation"


class Reentry(Record, tag_field="kind", tag="reentry", frozen=True, kw_only=True):
    """The trigger starts a model turn."""

    continuation_class: ReentryClass
    trigger_kind: TriggerKind
    prior_outcome: ClosureOutcome
    prior_waiting_reason: WaitingReason | None = None
    matched_waiting_reason: bool = msgspec.field(default_factory=bool)
    evidence: tuple[str, ...] = msgspec.field(default_factory=no_entries)


class LivenessOnly(Record, tag_field="kind", tag="liveness_only", frozen=True, kw_only=True):
    """The trigger is recorded and shown later; no model turn starts now."""

    trigger_kind: TriggerKind | None
    prior_outcome: ClosureOutcome
    prior_waiting_reason: WaitingReason | None = None
    evidence: tuple[str, ...] = msgspec.field(default_factory=no_entries)


Continuation: TypeAlias = Reentry | LivenessOnly
