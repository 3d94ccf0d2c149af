"""Invariants of the audit log: gapless, final, and consistent with the rows.

Owns:  I1, I3, I5, I6, and the half of I11 that the log shows.
Rule 1: a message without a row must be in the log up to its end. A log that mentions it without its
        end excuses nothing: logs are cut from the old end, and the end comes last.
Rule 2: a message in no log may have been pruned, if the agent that held it has pruned any: its log
        has a floor, and it admitted more messages than its rows and its log account for.
Rule 3: the agent that held it is known from an event or the caller. If not, any agent that fits
        rule 2 counts, unless something older than the commit that admitted the message is still in
        its log. In total, no more are excused than were pruned.
Rule 4: the log is read once, one agent at a time; memory holds one agent's objects without bodies.
Rule 5: what retention removed is not missed. Ended objects may lack a row; rows may lack an event
        once the agent's log has a floor. Open objects must be in both.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from holon.adapters.sqlite.check.facts import Facts, Invariant, Row, Violation
from holon.adapters.sqlite.database.row_codec import encode
from holon.decide.events.log_fold import (
    AT_HOME,
    DETACHED,
    DROPPED,
    NO_FOCUS,
    SELF,
    FoldedState,
    Key,
    Subject,
    fold,
    is_end,
)
from holon.model.errors import DecodeError
from holon.model.events.event import ClosureDecided, Event
from holon.model.turns.turn import ClosureOutcome
from holon.wire.codec import decode

# Of the admissions the logs still tell of: the agent and the message.
_ADMISSIONS: Final = """
with admissions (agent_id, message_id) as (
    select agent_id, case when json_valid(event) then event ->> '$.message_id' end
    from events where event like '{"kind":"message_admitted",%'
)
"""
# Commits and events are numbered in one order, so an agent's oldest admission that is left says
# from which commit on its log is whole.
_TOLD: Final = f"""{_ADMISSIONS}
select a.agent_id, count(*), min(c.applied_seq)
from admissions a left join commits c on c.commit_id = 'admit:' || a.message_id group by 1
"""
_UNTOLD: Final = f"""{_ADMISSIONS}
select agent_id, count(*) from messages
where message_id not in (select message_id from admissions where message_id is not null) group by 1
"""
_QUEUES: Final = """
select a.agent_id, coalesce(h.floor_seq, 0), q.queued_count, q.admitted_count
from agents a left join event_heads h using (agent_id) left join queues q using (agent_id)
"""
_QUEUED: Final = "select agent_id, count(*) from messages where state = 'queued' group by 1"
_COMMITTED: Final = """
select substr(commit_id, 7), applied_seq from commits
where commit_id like 'admit:%' and substr(commit_id, 7) not in (select message_id from messages)
"""
_EVENTS_OF: Final = """
select agent_id, message_id, event from (
    select log_seq, agent_id, event,
        case when json_valid(event) then event ->> '$.message_id' end as message_id
    from events
) where message_id in (select value from json_each(?)) order by log_seq
"""
_ROW_STATES: Final = """
select agent_id, 'agent', '', status from agents
union all select agent_id, 'identity', '', 'archived' from agents
    where archived = 1 and coalesce(identity ->> '$.status', '') <> 'archived'
union all select agent_id, 'focus', '', coalesce(current_work_item_id, '') from agents
union all select agent_id, 'message', message_id, state from messages
union all select agent_id, 'turn', turn_id,
    case state when 'open' then 'open' else json_extract(terminal, '$.kind') end from turns
union all select t.agent_id, 'tool_call', c.effect_id, c.state
    from tool_calls c join turns t using (turn_id)
union all select agent_id, 'work_item', work_item_id, state from work_items
union all select agent_id, 'work_item_revision', work_item_id, revision from work_items
union all select agent_id, 'task', task_id, status from tasks
union all select agent_id, 'timer', timer_id, status from timers
union all select agent_id, 'wait', wait_id, state from waits
union all select agent_id, 'workspace', workspace_id, 'attached' from attached_workspaces
union all select a.agent_id, 'active_workspace', '', coalesce(w.workspace_id, '')
    from agents a left join active_workspaces w using (agent_id)
union all select agent_id, 'skill', load_reason || ' ' || entrypoint_path,
    iif(state = 'turn_active' and is_lasting, 'turn_active_again', state) from skill_activations
union all select agent_id, 'history', '', history_from_turn from agent_contexts
union all select agent_id, 'working_memory', '', revision from working_memories where revision > 0
union all select agent_id, 'episode', episode_id, 'archived' from episodes
union all select agent_id, 'tainted_instructions', '', turn_id || ' ' || path
    from tainted_instructions
order by 1
"""
_EVENTS: Final = "select agent_id, event_seq, event from events order by agent_id, event_seq"
_HEADS: Final = """
select a.agent_id, coalesce(h.floor_seq, 0), coalesce(h.last_seq, 0)
from agents a left join event_heads h using (agent_id) order by 1
"""


class _Queue(NamedTuple):
    """What an agent has let in, by its counters, its rows and its log."""

    agent_id: str
    floor: int
    queued: tuple[int | None, int]  # counted, and found
    admitted: tuple[int | None, int]  # counted, and accounted for by rows and log
    whole_from: int | None  # the oldest commit whose admission is still in the log

    @property
    def pruned_count(self) -> int:
        counted, accounted = self.admitted
        return max(0, (counted or 0) - accounted) if self.floor else 0


class _Missing(NamedTuple):
    """A message that was promised and has no row."""

    promise: str
    agent_id: str | None = None
    commit_seq: int | None = None


def check_admitted(facts: Facts) -> Iterator[Violation]:
    """I1: an acknowledged message has a row, or its end is in the log."""
    queues = list(_queues(facts))
    for queue in queues:
        for fault in _count_faults(queue):
            yield _admission_violation(queue.agent_id, fault)
    missing = _missing(facts)
    if not missing:
        return
    pruning = {queue.agent_id: queue for queue in queues if queue.pruned_count}
    evidence = _AdmissionEvidence(facts, missing)
    excused: list[str] = []
    for message_id, lost in sorted(missing.items()):
        state = evidence.states.get(message_id)
        owner = evidence.agents.get(message_id, lost.agent_id)
        if state is None and _may_be_pruned(lost, owner, pruning):
            excused.append(message_id)
        elif state is None or not is_end(Subject.MESSAGE, state):
            yield _admission_violation(message_id, f"{lost.promise}, but it is gone")
    pruned_count = sum(queue.pruned_count for queue in pruning.values())
    if len(excused) > pruned_count:
        for message_id in excused:
            detail = f"is gone like {len(excused)} in all, but only {pruned_count} were pruned"
            yield _admission_violation(
                message_id, f"{missing[message_id].promise}, but it {detail}"
            )


def _queues(facts: Facts) -> Iterator[_Queue]:
    logged = {agent: (int(count), first) for agent, count, first in facts.texts(_TOLD)}
    unlogged = {agent: int(count) for agent, count in facts.texts(_UNTOLD)}
    queued = {agent: int(count) for agent, count in facts.texts(_QUEUED)}
    for agent_id, floor, queued_count, admitted_count in facts.texts(_QUEUES):
        logged_count, first = logged.get(agent_id, (0, ""))
        accounted = logged_count + unlogged.get(agent_id, 0)
        yield _Queue(
            agent_id=agent_id,
            floor=int(floor),
            queued=(_number(queued_count), queued.get(agent_id, 0)),
            admitted=(_number(admitted_count), accounted),
            whole_from=_number(first),
        )


def _count_faults(queue: _Queue) -> Iterator[str]:
    """Compare the counters with the rows: an uncounted message is never claimed."""
    counted, actual = queue.queued
    if counted is None:
        yield "has no queue"
        return
    if counted != actual:
        yield f"counts {counted} queued messages, but {actual} are"
    admitted, accounted = queue.admitted
    if admitted != accounted and (queue.floor == 0 or (admitted or 0) < accounted):
        yield f"counts {admitted} admitted messages, but {accounted} are known"


def _missing(facts: Facts) -> dict[str, _Missing]:
    lost = {
        message_id: _Missing(
            "its admission was committed", facts.acked.get(message_id), int(applied_seq)
        )
        for message_id, applied_seq in facts.texts(_COMMITTED)
    }
    for message_id in facts.acked.keys() - lost.keys():
        if not any(facts.rows("select 1 from messages where message_id = ?", (message_id,))):
            lost[message_id] = _Missing("its admission was acknowledged", facts.acked[message_id])
    return lost


class _AdmissionEvidence:
    """What the logs say of messages that are missing."""

    def __init__(self, facts: Facts, missing: Mapping[str, _Missing]) -> None:
        self.agents: dict[str, str] = {}
        self.states: dict[str, str] = {}
        events: dict[str, list[Event]] = {}
        for agent_id, message_id, text in facts.texts(_EVENTS_OF, (encode(list(missing)),)):
            self.agents[message_id] = agent_id
            try:
                events.setdefault(message_id, []).append(decode(text, Event))
            except DecodeError:
                continue  # I6 says which event it is
        for message_id, message_events in events.items():
            state = fold(message_events).states.get((Subject.MESSAGE, message_id))
            if state is not None:
                self.states[message_id] = state


def _may_be_pruned(lost: _Missing, owner: str | None, pruning: Mapping[str, _Queue]) -> bool:
    if owner is not None:
        return owner in pruning
    return any(
        lost.commit_seq is None or queue.whole_from is None or lost.commit_seq < queue.whole_from
        for queue in pruning.values()
    )


def _number(text: str) -> int | None:
    return int(text) if text else None


def _admission_violation(subject: str, detail: str) -> Violation:
    return Violation(invariant=Invariant.ADMITTED_STAYS, subject=subject, detail=detail)


class _ByAgent:
    """Rows sorted by their first column, handed out one agent at a time."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._ahead = next(rows, None)

    def take(self, agent_id: str) -> Iterator[Row]:
        """Yield this agent's rows; unread rows of earlier agents are skipped."""
        while self._ahead is not None and str(self._ahead[0]) <= agent_id:
            row, self._ahead = self._ahead, next(self._rows, None)
            if row[0] == agent_id:
                yield row


class _Log:
    """One agent's log while it is read: notes what is wrong with it on the way."""

    def __init__(self, agent_id: str, floor: int, last: int) -> None:
        self.agent_id = agent_id
        self.floor = floor
        self.last = last
        self.faults: list[Violation] = []
        self.seqs: list[int] = []  # of the events that were folded, newest last

    def events(self, rows: Iterator[Row]) -> Iterator[Event]:
        """Yield the events in order, noting gaps, unreadable ones and ill-formed closures."""
        before = self.floor
        for _, seq, text in rows:
            assert isinstance(seq, int)
            if seq != before + 1:
                self.note(Invariant.LOG_IS_GAPLESS, f"event_seq jumps from {before} to {seq}")
            before = seq
            try:
                event: Event = decode(str(text), Event)
            except DecodeError as error:
                self.note(Invariant.LOG_GIVES_ROWS, f"event {seq} cannot be read: {error}")
                continue
            if isinstance(event, ClosureDecided):
                self._note_closure(event, seq)
            self.seqs.append(seq)
            yield event
        if before != self.last:
            detail = f"event_seq ends at {before}, but {self.last} were given out"
            self.note(Invariant.LOG_IS_GAPLESS, detail)

    def _note_closure(self, event: ClosureDecided, seq: int) -> None:
        if event.waiting_reason is not None and event.outcome is not ClosureOutcome.WAITING:
            self.note(Invariant.CLOSURES_HOLD, f"event {seq} is {event.outcome} with a reason")
        if (event.work_item_id is not None) != (event.outcome is ClosureOutcome.CONTINUABLE):
            detail = f"event {seq} is {event.outcome} and names {event.work_item_id or 'no item'}"
            self.note(Invariant.CLOSURES_HOLD, detail)

    def note(self, invariant: Invariant, detail: str) -> None:
        self.faults.append(Violation(invariant=invariant, subject=self.agent_id, detail=detail))


class _LogComparison(NamedTuple):
    log: _Log
    folded: FoldedState
    rows: dict[Key, str]


def check_logs(facts: Facts) -> Iterator[Violation]:
    """I3, I5, I6, I11: read every agent's log and hold it against the agent's rows."""
    events = _ByAgent(facts.rows(_EVENTS))
    states = _ByAgent(facts.rows(_ROW_STATES))
    for agent_id, floor, last in facts.texts(_HEADS):
        log = _Log(agent_id, int(floor), int(last))
        folded = fold(log.events(events.take(agent_id)))
        rows = {(Subject(str(kind)), str(id_)): str(s) for _, kind, id_, s in states.take(agent_id)}
        comparison = _LogComparison(log, folded, rows)
        yield from log.faults
        yield from _late_moves(comparison)
        yield from _differences(comparison)
    yield from facts.report(
        Invariant.LOG_IS_GAPLESS,
        """select agent_id, 'has ' || count(*) || ' events but no row of its own' from events
           where agent_id not in (select agent_id from agents) group by agent_id""",
    )


def _late_moves(comparison: _LogComparison) -> Iterator[Violation]:
    """I3: an ended object does not change again."""
    for move, ended_as, place in comparison.folded.late:
        yield Violation(
            invariant=Invariant.ENDS_ARE_FINAL,
            subject=comparison.log.agent_id,
            detail=f"{move.subject} {move.id} was {ended_as} and became {move.state}"
            f" in event {comparison.log.seqs[place]}",
        )


def _differences(comparison: _LogComparison) -> Iterator[Violation]:
    """I6: the last state in the log equals the state of the row."""
    folded, rows = comparison.folded.states, comparison.rows
    if comparison.log.floor == 0:
        folded.setdefault((Subject.FOCUS, SELF), NO_FOCUS)
        folded.setdefault((Subject.ACTIVE_WORKSPACE, SELF), AT_HOME)
    for key, logged in folded.items():
        if key not in rows and not _may_be_gone(key, logged):
            yield _difference(comparison, key, f"{logged} in the log, but it has no row")
        elif key in rows and rows[key] != logged:
            yield _difference(comparison, key, f"{logged} in the log and {rows[key]} in its row")
    if comparison.log.floor == 0:
        for key in rows.keys() - folded.keys():
            yield _difference(comparison, key, f"{rows[key]} in its row, but no event tells of it")


def _may_be_gone(key: Key, logged: str) -> bool:
    """Whether the row may be missing: the object ended or was released."""
    if key[0] is Subject.WORKSPACE:
        return logged == DETACHED
    if key[0] is Subject.SKILL:
        return logged == DROPPED
    return is_end(key[0], logged) or key[0] is Subject.WORK_ITEM_REVISION  # reported by WORK_ITEM


def _difference(comparison: _LogComparison, key: Key, how: str) -> Violation:
    subject, id_ = key
    return Violation(
        invariant=Invariant.LOG_GIVES_ROWS,
        subject=comparison.log.agent_id,
        detail=f"{subject}{f' {id_}' if id_ else ''} is {how}",
    )
