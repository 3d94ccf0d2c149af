"""Status of the runtime and of its daemon.

Owns:  the answers of /control/runtime/status and `holon daemon status`, and what both share.
Rule 1: `processing` takes precedence over `waiting`, and that over `idle`; the counts say why.
Rule 2: both shapes are read by adjacent versions: a reader ignores unknown fields, and only fields
        that existed from the beginning may be required of the other side.
"""

from enum import StrEnum

import msgspec

from holon.model.events.briefs import BriefRecord
from holon.model.events.reads import ActivityCounts
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.values import Instant
from holon.projections.budgets import MeasureView


class RuntimeState(StrEnum):
    """What a healthy runtime does."""

    IDLE = "idle"
    WAITING = "waiting"
    PROCESSING = "processing"


class FailurePhase(StrEnum):
    """When something failed."""

    STARTUP = "startup"
    SHUTDOWN = "shutdown"
    RUNTIME_TURN = "runtime_turn"


class DaemonState(StrEnum):
    """Whether there is a runtime to speak of. `stale` files name a process that is gone."""

    RUNNING = "running"
    STOPPED = "stopped"
    STALE = "stale"


class ControlConnectivity(StrEnum):
    """Whether the control surface answers."""

    CONNECTED = "connected"
    UNREACHABLE = "unreachable"
    NOT_TRIED = "not_tried"


# Read by other versions: unlike other records these let unknown fields pass.
class ActivitySummary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=False
):
    """What goes on, in five figures. Each count stops at a bound."""

    state: RuntimeState = RuntimeState.IDLE
    active_agent_count: int = 0
    active_task_count: int = 0
    processing_agent_count: int = 0
    waiting_agent_count: int = 0


class LastFailure(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """The last thing known to have gone wrong, and where to look further."""

    occurred_at: Instant
    summary: str
    phase: FailurePhase
    detail_hint: str | None = None


class RuntimeProblem(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """Something that is not as it should be while the runtime goes on, and what to do about it."""

    code: str
    message: str
    hint: str | None = None


class RuntimeStatus(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """What a running runtime says of itself."""

    ok: bool
    healthy: bool
    pid: int
    home_dir: str
    socket_path: str
    http_addr: str | None = None
    started_at: Instant | None = None
    config_fingerprint: str | None = None
    version: str | None = None
    activity: ActivitySummary | None = None
    startup_surface: dict[str, str] | None = None
    runtime_surface: dict[str, str] | None = None
    budgets: tuple[MeasureView, ...] = ()  # of all agents together
    last_failure: LastFailure | None = None
    problems: tuple[RuntimeProblem, ...] = ()


class DaemonStatus(Record, frozen=True, kw_only=True):
    """What `holon daemon status` says, whether or not a runtime answers."""

    ok: bool
    state: DaemonState
    healthy: bool
    home_dir: str
    socket_path: str
    control_connectivity: ControlConnectivity
    stale_files: tuple[str, ...]
    message: str
    http_addr: str | None = None
    pid: int | None = None
    runtime_config_fingerprint: str | None = None
    config_fingerprint_match: bool | None = None
    activity: ActivitySummary | None = None
    last_failure: LastFailure | None = None
    last_failure_path: str | None = None
    problems: tuple[RuntimeProblem, ...] = ()


def activity_summary(counts: ActivityCounts) -> ActivitySummary:
    """Return what goes on. First matching state wins."""
    return ActivitySummary(
        state=_state(counts),
        active_agent_count=counts.active_agent_count,
        active_task_count=counts.active_task_count,
        processing_agent_count=counts.processing_agent_count,
        waiting_agent_count=counts.waiting_agent_count,
    )


def turn_failure(brief: BriefRecord, *, is_up: bool = True) -> LastFailure:
    """Return the failure of a turn as the daemon's status shows it.

    The transcript is read from a service: where none `is_up`, the advice begins with what works.
    """
    failure = brief.failure
    transcript = f"`holon transcript --agent {brief.agent_id}`"
    return LastFailure(
        occurred_at=brief.created_at,
        summary=one_line(brief.text if failure is None else failure.summary),
        phase=FailurePhase.RUNTIME_TURN,
        detail_hint=f"see {transcript} or `holon daemon logs`"
        if is_up
        else f"see `holon daemon logs`; after `holon daemon start`, {transcript}",
    )


def newest_failure(*known: LastFailure | None) -> LastFailure | None:
    """Return the failure that happened last, of those there are."""
    there = [failure for failure in known if failure is not None]
    return max(there, key=lambda failure: failure.occurred_at, default=None)


def _state(counts: ActivityCounts) -> RuntimeState:
    if counts.processing_agent_count:
        return RuntimeState.PROCESSING
    if counts.waiting_agent_count or counts.active_task_count:
        return RuntimeState.WAITING
    return RuntimeState.IDLE
