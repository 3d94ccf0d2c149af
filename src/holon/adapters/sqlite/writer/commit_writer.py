"""Apply commits: the only code that changes rows for the runtime, apart from retention.

Owns:  the transaction, and one lookup per expectation; a failed expectation reports the actual
       value.
Rule 1: a group of commits is one transaction; each commit in it succeeds or fails alone.
Rule 2: a commit is atomic, and applying the same commit_id twice is the same as applying it once.
Rule 3: a refused commit leaves nothing behind and does not affect the others of its group.
Rule 4: when the disk is full or read-only nothing of the group was written. Any other failure of
        the group leaves durability unknown: nothing is retried or accepted afterwards.
Rule 5: each group is written by the owner of the home, checked inside its transaction. A replaced
        owner writes nothing more.
Rule 6: a programming error ends like a failed disk: the group is rolled back, and every caller in
        it gets the error.
Rule 7: what a commit means is decided before (decide/events/audit): this writes rows, events and
        marks, compares expectations, and allocates numbers.
Rule 8: a group counts only when the files it went to are still those of the home.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias, assert_never, get_args

import apsw

from holon.adapters.sqlite.agents import AgentChange, AgentChanges
from holon.adapters.sqlite.budgets import TurnLimitChanges, TurnRateChange
from holon.adapters.sqlite.database.database_files import DatabaseFiles
from holon.adapters.sqlite.database.error_mapping import ConstraintNames, running_error
from holon.adapters.sqlite.database.statements import (
    ChangeRefusedError,
    Row,
    Statements,
    named_queries,
)
from holon.adapters.sqlite.events import EventLog
from holon.adapters.sqlite.guidance import InstructionChanges, SkillChanges
from holon.adapters.sqlite.memory import MemoryMarks, WorkingMemoryChanges
from holon.adapters.sqlite.queue import KeyUsedError, MessageChange, MessageChanges
from holon.adapters.sqlite.turns import ContextChanges, TurnChange, TurnChanges
from holon.adapters.sqlite.wake import TriggerChange, TriggerChanges, WakeChange, WakeChanges
from holon.adapters.sqlite.work import WorkChange, WorkChanges
from holon.adapters.sqlite.workspaces import WorkspaceChanges
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAbsent,
    AgentAdmits,
    AgentGeneration,
    AgentInStatus,
    Applied,
    AuditedCommit,
    CommitOutcome,
    ConstraintRefused,
    Expect,
    ExpectationFailed,
    MessageInState,
    QueueMessage,
    RecordEvent,
    TaskNotTerminal,
    TimerAtSlot,
    WaitInState,
    WakeHintAtRevision,
    WorkItemAtRevision,
    WorkItemWaitsForOnly,
)
from holon.model.errors import StoreBrokenError, StoreError
from holon.model.guidance import NoteInstructionChange, SkillChange
from holon.model.memory.records import MemoryChange
from holon.model.tasks import TaskStatus
from holon.model.turns.compaction import RememberContext
from holon.model.values import AgentId, from_micros, to_micros
from holon.model.workspaces import (
    WorkspaceChange,
)

_AgentExpect: TypeAlias = AgentGeneration | AgentAdmits | AgentInStatus | AgentAbsent

_ABSENT = "absent"
_OPEN_TASK_STATUSES = (TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.CANCELLING)
Result: TypeAlias = CommitOutcome | StoreError
RowWriter: TypeAlias = Callable[..., None]  # a change of its kinds, and `at`
RequireOwner: TypeAlias = Callable[[], None]


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
        """Return the value found instead, or None when the expectation holds."""
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


def unowned() -> None:
    """Check nothing: the connection belongs to a test or to a world that has one process."""


class AppliedGroup(NamedTuple):
    """What came of a group, in order, and which agents it moved."""

    results: list[Result]
    touched: frozenset[AgentId]
    is_open: bool = False  # its transaction is: nothing of it is durable yet


class CommitWriter:
    """Applies groups of commits on the one connection that writes."""

    def __init__(
        self,
        connection: apsw.Connection,
        require_owner: RequireOwner = unowned,
        files: DatabaseFiles | None = None,
    ) -> None:
        """`files` are those of the database, unless it is in memory."""
        self._connection = connection
        self._require_owner = require_owner
        self._files = files
        self._statements = Statements(connection)
        self._sql = named_queries("log")
        self._names = ConstraintNames(connection)
        self._expectations = ExpectationChecks(self._statements)
        self._events = EventLog(self._statements)
        self._messages = MessageChanges(self._statements, self._names)
        self._row_writers = row_writers(self._statements, self._messages)
        self._memory = MemoryMarks(self._statements)
        self._touched: set[AgentId] = set()
        self.broken: StoreBrokenError | None = None

    def apply_group(self, commits: Sequence[AuditedCommit]) -> AppliedGroup:
        """Apply commits in order, durably, as one transaction; never raises."""
        group = self.write_group(commits)
        return self.make_durable(group) if group.is_open else group

    def write_group(self, commits: Sequence[AuditedCommit]) -> AppliedGroup:
        """Apply commits in order in one transaction, which is left open; never raises."""
        if self.broken is not None:
            return _failed(self.broken, commits)
        try:
            results = self._apply_all(commits)
            self._events.finish()
        except Exception as error:  # noqa: BLE001 - named boundary: waiters need an outcome
            return _failed(self._give_up(error), commits)
        return AppliedGroup(results, frozenset(self._touched), is_open=True)

    def make_durable(self, group: AppliedGroup) -> AppliedGroup:
        """End the transaction of a group, and return what came of it; never raises."""
        try:
            if self._files is not None:
                self._files.require_ours()
            self._statements.run("commit")
            if self._files is not None:
                self._files.written()
                self._files.require_ours()
        except Exception as error:  # noqa: BLE001 - named boundary: waiters need an outcome
            return _failed(self._give_up(error), group.results)
        return group._replace(is_open=False)

    def _give_up(self, error: Exception) -> StoreError:
        """Undo the group; remember the failure when nothing may be written any more."""
        if isinstance(error, apsw.Error):
            failure = running_error(error, system_errno=self._connection.system_errno)
        else:
            failure = error if isinstance(error, StoreError) else _bug(error)
        if not (isinstance(error, apsw.Error) and isinstance(failure, StoreBrokenError)):
            try:
                if self._connection.in_transaction:
                    self._statements.run("rollback")
            except apsw.Error as worse:
                failure = StoreBrokenError(f"the group could not be undone: {worse}")
        if isinstance(failure, StoreBrokenError):
            self.broken = failure
        return failure

    def _apply_all(self, commits: Sequence[AuditedCommit]) -> list[Result]:
        """Apply a group. Savepoints are paid for only when a commit of it is refused or known."""
        self._begin()
        if self._remember(commits) == len(commits) and self._carry_out_all(commits):
            return [Applied()] * len(commits)
        self._statements.run("rollback")
        return self._apply_guarded(commits)

    def _begin(self) -> None:
        self._touched.clear()
        self._expectations.forget()
        self._events.begin()
        self._statements.run("begin immediate")
        self._require_owner()

    def _apply_guarded(self, commits: Sequence[AuditedCommit]) -> list[Result]:
        """Apply a group from its beginning, taking back what refused commits of it wrote."""
        self._begin()
        results: list[Result] = []
        for commit in commits:
            mark = self._events.mark()
            self._statements.run("savepoint one_commit")
            is_new = self._remember([commit]) == 1
            outcome = self._carry_out(commit) if is_new else Applied(replayed=True)
            if not isinstance(outcome, Applied):
                self._statements.run("rollback to one_commit")
                self._events.take_back(mark)
            self._statements.run("release one_commit")
            results.append(outcome)
        return results

    def _remember(self, commits: Sequence[AuditedCommit]) -> int:
        """Note that these were applied; return how many of them are new."""
        rows = [(commit.commit_id, to_micros(commit.at)) for commit in commits]
        return self._statements.insert(self._sql["remember_commit"], rows)

    def _carry_out_all(self, commits: Sequence[AuditedCommit]) -> bool:
        """Write what new commits change; stops at the first that is refused and returns False."""
        for queues_only, some in groupby(commits, key=_queues_only):
            if queues_only:
                if not self._queue_all(list(some)):
                    return False
            elif not all(isinstance(self._carry_out(commit), Applied) for commit in some):
                return False
        return True

    def _queue_all(self, commits: Sequence[AuditedCommit]) -> bool:
        """Carry out commits that do nothing but queue, many rows at a time: most of what comes in.

        A queued message moves no expectation of another, so all are looked at first.
        """
        if any(self._expectations.first_failure(commit.expects) for commit in commits):
            return False
        try:
            self._messages.queue_all(
                [
                    each.change
                    for commit in commits
                    for each in commit.changes
                    if isinstance(each.change, QueueMessage)
                ]
            )
            for commit in commits:
                self._audit(commit)
        except (apsw.ConstraintError, ChangeRefusedError):
            return False  # one by one it will be seen which of them, and why
        return True

    def _carry_out(self, commit: AuditedCommit) -> CommitOutcome:
        """Write what a new commit changes, if what it expects holds."""
        at = to_micros(commit.at)
        failure = self._expectations.first_failure(commit.expects)
        if failure is not None:
            return failure
        try:
            for each in commit.changes:
                self._row_writers[type(each.change)](each.change, at=at)
                self._events.append(each.events, at=at)
                if not isinstance(each.change, QueueMessage):  # which is most of what comes in
                    self._expectations.forget()  # it may have moved the agent
                    self._memory.write(each.marks, at=at)
        except KeyUsedError as used:
            return used.outcome
        except ChangeRefusedError as refused:
            return ConstraintRefused(constraint=refused.constraint)
        except apsw.ConstraintError as error:
            return ConstraintRefused(constraint=self._names.name_of(error))
        self._note_touched(commit)
        return Applied()

    def _audit(self, commit: AuditedCommit) -> None:
        """Log what a commit that only queues did."""
        at = to_micros(commit.at)
        for each in commit.changes:
            self._events.append(each.events, at=at)
        self._note_touched(commit)

    def _note_touched(self, commit: AuditedCommit) -> None:
        self._touched.update(event.agent_id for each in commit.changes for event in each.events)


def row_writers(statements: Statements, messages: MessageChanges) -> Mapping[type, RowWriter]:
    """Return, for each kind of change, what writes its rows."""
    by_room: tuple[tuple[object, RowWriter], ...] = (
        (AgentChange, AgentChanges(statements).write),
        (MessageChange, messages.write),
        (TurnChange, TurnChanges(statements).write),
        (RememberContext, ContextChanges(statements).write),
        (WorkChange, WorkChanges(statements).write),
        (WakeChange, WakeChanges(statements).write),
        (TriggerChange, TriggerChanges(statements).write),
        (MemoryChange, WorkingMemoryChanges(statements).write),
        (WorkspaceChange, WorkspaceChanges(statements).write),
        (SkillChange, SkillChanges(statements).write),
        (NoteInstructionChange, InstructionChanges(statements).write),
        (TurnRateChange, TurnLimitChanges(statements).write),
        (RecordEvent, _no_rows),
    )
    return {kind: write for kinds, write in by_room for kind in get_args(kinds) or (kinds,)}


def _no_rows(change: RecordEvent, *, at: int) -> None:
    """The event is all there is."""


def _queues_only(commit: AuditedCommit) -> bool:
    return all(isinstance(each.change, QueueMessage) for each in commit.changes)


def _bug(error: Exception) -> StoreBrokenError:
    """Return what an unforeseen exception means to the callers.

    Where it was undone its durability is known: nothing of it is there. Still "full" or "busy"
    would be a lie, for those say that trying again helps. The same commit would meet the same bug
    and take its neighbours along, for ever; so the host stops and reports it.
    """
    failure = StoreBrokenError(
        f"the writer failed on a commit: {type(error).__name__}: {error}",
        hint="this is a fault of Holon; start it again: it recovers from what is durable",
    )
    failure.__cause__ = error
    return failure


def _failed(failure: StoreError, members: Sequence[object]) -> AppliedGroup:
    return AppliedGroup([failure] * len(members), frozenset())
