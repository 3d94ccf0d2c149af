"""Failpoints: named places where a test may make the process fail.

Owns:  the list of names and the port. Production passes `NoFailpoints`, which does nothing.
Rule 1: a failpoint sits between two durable moments, where a crash must be survived.
Rule 2: every name is hit by some test; tests/runtime/test_failpoints.py keeps that true.
"""

from collections.abc import Awaitable, Generator
from enum import StrEnum
from typing import Protocol


class Failpoint(StrEnum):
    """Every place that can be made to fail."""

    ADMIT_BEFORE_COMMIT = "admit.before_commit"
    ADMIT_AFTER_COMMIT = "admit.after_commit"
    CLAIM_AFTER_COMMIT = "claim.after_commit"
    PROVIDER_BEFORE_CALL = "provider.before_call"
    ROUND_BEFORE_COMMIT = "round.before_commit"
    ROUND_AFTER_COMMIT = "round.after_commit"
    TOOL_BEFORE_DONE = "tool.before_done"
    TOOL_AFTER_DONE = "tool.after_done"
    TASK_BEFORE_START = "task.before_start"
    TASK_AFTER_START = "task.after_start"
    SETTLE_BEFORE_COMMIT = "settle.before_commit"
    SETTLE_AFTER_COMMIT = "settle.after_commit"
    TIMER_BEFORE_FIRE = "timer.before_fire"
    TICK_BEFORE_COMMIT = "tick.before_commit"
    RECOVERY_BETWEEN_AGENTS = "recovery.between_agents"
    RETENTION_BETWEEN_BATCHES = "retention.between_batches"


class Failpoints(Protocol):
    """What the runtime calls at each named place."""

    def reach(self, point: Failpoint) -> Awaitable[None]:
        """Do nothing, or fail as the test asked."""
        ...


class _Nothing:
    """Awaiting this does nothing, and costs next to nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class NoFailpoints:
    """Nothing ever fails on purpose."""

    def __init__(self) -> None:
        self._nothing = _Nothing()

    def reach(self, point: Failpoint) -> Awaitable[None]:
        """Do nothing."""
        del point
        return self._nothing
