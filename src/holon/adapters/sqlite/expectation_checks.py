"""Whether what a decision saw still holds, inside the transaction that acts on it.

Owns:  one look per expectation. A failed one says what is there now.
"""

from typing import TypeAlias, assert_never

from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Row, Statements
from holon.model.agent_status import AgentStatus
from holon.model.expectation import (
    AgentAbsent,
    AgentAdmits,
    AgentGeneration,
    AgentInStatus,
    Expect,
    ExpectationFailed,
    MessageInState,
    TaskNotTerminal,
    TimerAtSlot,
    WaitInState,
    WakeHintAtRevision,
    WorkItemAtRevision,
    WorkItemWaitsForOnly,
)
from holon.model.instant import from_micros, to_micros
from holon.model.task import TaskStatus

_AgentExpect: TypeAlias = AgentGeneration | AgentAdmits | AgentInStatus | AgentAbsent

_ABSENT = "absent"
_OPEN_TASK_STATUSES = (TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.CANCELLING)


class ExpectationChecks:
    """Checks expectations against the rows as they are now."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._fences: dict[str, Row | None] = {}  # agents looked at since the last `forget`
        self._held: set[Expect] = set()  # of those agents, what was found to hold
        self._sql = named_queries("log")

    def forget(self) -> None:
        """Look at every agent anew: something other than a queue may have changed."""
        self._fences.clear()
        self._held.clear()

    def first_failure(self, expects: tuple[Expect, ...]) -> ExpectationFailed | None:
        """Return the first expectation that does not hold, or nothing when all do."""
        for expect in expects:
            if expect in self._held:
                continue
            found = self._mismatch(expect)
            if found is not None:
                return ExpectationFailed(expect=expect, found=found)
            if isinstance(expect, AgentAdmits):  # the one that repeats within a group
                self._held.add(expect)
        return None

    def _mismatch(self, expect: Expect) -> str | None:
        """Return what is there instead, or nothing when the expectation holds."""
        match expect:
            case AgentGeneration() | AgentAdmits() | AgentInStatus() | AgentAbsent():
                return self._agent_mismatch(expect)
            case MessageInState(message_id=message_id, state=state):
                return _differs(self._look("message_state", message_id), state.value)
            case WaitInState(wait_id=wait_id, state=state):
                return _differs(self._look("wait_state", wait_id), state.value)
            case WorkItemAtRevision(work_item_id=item_id, revision=revision):
                return _differs(self._look("work_item_revision", item_id), revision)
            case WorkItemWaitsForOnly(work_item_id=item_id, wait_count=count):
                return _differs(self._look("work_item_wait_count", item_id), count)
            case WakeHintAtRevision(agent_id=agent_id, source_key=key, revision=revision):
                return _differs(self._look("hint_revision", agent_id, key), revision)
            case TaskNotTerminal(task_id=task_id):
                found = self._look("task_status", task_id)
                return None if found in _OPEN_TASK_STATUSES else str(found or _ABSENT)
            case TimerAtSlot():
                return self._timer_mismatch(expect)
            case _:
                assert_never(expect)

    def _look(self, name: str, *key: str) -> str | int | None:
        row = self._statements.row(self._sql[name], key)
        if row is None:
            return None
        value = row[0]
        return value if isinstance(value, str | int) else None

    def _fence(self, agent_id: str) -> Row | None:
        if agent_id not in self._fences:
            self._fences[agent_id] = self._statements.row(self._sql["agent_fence"], (agent_id,))
        return self._fences[agent_id]

    def _agent_mismatch(self, expect: _AgentExpect) -> str | None:
        row = self._fence(expect.agent_id)
        if row is None:
            return None if isinstance(expect, AgentAbsent) else _ABSENT
        status, archived, generation = row
        match expect:
            case AgentGeneration(generation=expected):
                return None if generation == expected else f"generation {generation!r}"
            case AgentAdmits():
                if archived:
                    return "archived"
                return "stopped" if status == AgentStatus.STOPPED.value else None
            case AgentInStatus(statuses=statuses):
                return None if status in statuses else str(status)
            case AgentAbsent():
                return "present"
            case _:
                assert_never(expect)

    def _timer_mismatch(self, expect: TimerAtSlot) -> str | None:
        row = self._statements.row(self._sql["timer_slot"], (expect.timer_id,))
        if row is None:
            return _ABSENT
        status, slot = row
        if slot == to_micros(expect.slot):
            return None
        return (
            f"next slot {from_micros(slot).isoformat()}" if isinstance(slot, int) else str(status)
        )


def _differs(found: str | int | None, expected: str | int) -> str | None:
    if found == expected:
        return None
    return _ABSENT if found is None else str(found)
