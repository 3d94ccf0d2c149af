"""The seven postures of an agent and the signals that move it between them.

Owns:  the names only; the transitions are in decide/agent_lifecycle.
"""

from enum import StrEnum


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
