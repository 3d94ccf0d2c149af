"""The agent lifecycle: which signal moves which posture where.

Owns:  every transition between agent postures, as one table.
Rule 1: a transition that is not in TRANSITIONS cannot happen.
Rule 2: stopped means stopped for everyone. `woken` has no row there, nor on paused: only an
        explicit resume crosses either boundary, and a stopped agent has to boot again.
Rule 3: a row may lead back to its own posture where a signal can arrive twice, after a crash or
        from two sources at once.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holon.model.agent_status import AgentSignal, AgentStatus
from holon.model.errors import ForbiddenTransitionError

# The operator may interrupt every posture that is not already down.
_INTERRUPTS: Final = {
    AgentSignal.PAUSE_REQUESTED: AgentStatus.PAUSED,
    AgentSignal.STOP_REQUESTED: AgentStatus.STOPPED,
}

TRANSITIONS: Final[Mapping[AgentStatus, Mapping[AgentSignal, AgentStatus]]] = MappingProxyType(
    {
        AgentStatus.BOOTING: {
            AgentSignal.BOOTED: AgentStatus.AWAKE_IDLE,
            **_INTERRUPTS,
        },
        AgentStatus.AWAKE_IDLE: {
            AgentSignal.WOKEN: AgentStatus.AWAKE_IDLE,
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.AWAKE_RUNNING: {
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,  # an open turn goes on
            AgentSignal.RUN_SETTLED: AgentStatus.AWAKE_IDLE,
            AgentSignal.TASK_AWAITED: AgentStatus.AWAITING_TASK,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.AWAITING_TASK: {
            AgentSignal.WOKEN: AgentStatus.AWAKE_IDLE,
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.ASLEEP: {
            AgentSignal.WOKEN: AgentStatus.AWAKE_IDLE,
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.PAUSED: {
            AgentSignal.RESUME_REQUESTED: AgentStatus.AWAKE_IDLE,
            AgentSignal.STOP_REQUESTED: AgentStatus.STOPPED,
        },
        AgentStatus.STOPPED: {
            AgentSignal.RESUME_REQUESTED: AgentStatus.BOOTING,
        },
    }
)

_DOWN: Final = frozenset({AgentStatus.BOOTING, AgentStatus.PAUSED, AgentStatus.STOPPED})


def next_status(status: AgentStatus, signal: AgentSignal) -> AgentStatus:
    """Return the posture that follows, or raise ForbiddenTransitionError without such a row."""
    try:
        return TRANSITIONS[status][signal]
    except KeyError:
        raise ForbiddenTransitionError(status, signal) from None


def may_run(status: AgentStatus) -> bool:
    """Whether the scheduler may give this agent a lane."""
    return status not in _DOWN


def admits(status: AgentStatus) -> bool:
    """Whether messages may be queued for this agent. A paused one keeps them for later."""
    return status is not AgentStatus.STOPPED
