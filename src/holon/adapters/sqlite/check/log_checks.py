"""Invariants of the audit log: gapless, final, and the same story the rows tell.

Owns:  I3, I5, I6 and the half of I11 the log can see.
Rule 1: the log is read once, one agent at a time; memory holds one agent's objects, not its bodies.
Rule 2: what retention took is not missed. Ended objects may lack a row; rows may lack an event once
        the agent's log has a floor. What has not ended must be in both.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from holon.adapters.sqlite.check.facts import Facts, Row
from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.decide.audit_fold import (
    AT_HOME,
    DETACHED,
    NO_FOCUS,
    SELF,
    FoldedState,
    Key,
    Subject,
    fold,
    is_end,
)
from holon.decide.audit_skills import DROPPED
from holon.model.closure import ClosureOutcome
from holon.model.errors import DecodeError
from holon.model.event import ClosureDecided, Event
from holon.wire.codec import decode

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


class _ByAgent:
    """Rows sorted by their first column, handed out one agent at a time."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._ahead = next(rows, None)

    def take(self, agent_id: str) -> Iterator[Row]:
        """Yield this agent's rows; rows of agents before it that nobody took are passed over."""
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


class _Told(NamedTuple):
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
        told = _Told(log, folded, rows)
        yield from log.faults
        yield from _late_moves(told)
        yield from _differences(told)
    yield from facts.report(
        Invariant.LOG_IS_GAPLESS,
        """select agent_id, 'has ' || count(*) || ' events but no row of its own' from events
           where agent_id not in (select agent_id from agents) group by agent_id""",
    )


def _late_moves(told: _Told) -> Iterator[Violation]:
    """I3: what ended does not move again."""
    for move, ended_as, place in told.folded.late:
        yield Violation(
            invariant=Invariant.ENDS_ARE_FINAL,
            subject=told.log.agent_id,
            detail=f"{move.subject} {move.id} was {ended_as} and became {move.state}"
            f" in event {told.log.seqs[place]}",
        )


def _differences(told: _Told) -> Iterator[Violation]:
    """I6: the last the log says of an object is the state its row holds."""
    folded, rows = told.folded.states, told.rows
    if told.log.floor == 0:
        folded.setdefault((Subject.FOCUS, SELF), NO_FOCUS)
        folded.setdefault((Subject.ACTIVE_WORKSPACE, SELF), AT_HOME)
    for key, said in folded.items():
        if key not in rows and not _may_be_gone(key, said):
            yield _difference(told, key, f"{said} in the log, but it has no row")
        elif key in rows and rows[key] != said:
            yield _difference(told, key, f"{said} in the log and {rows[key]} in its row")
    if told.log.floor == 0:
        for key in rows.keys() - folded.keys():
            yield _difference(told, key, f"{rows[key]} in its row, but no event tells of it")


def _may_be_gone(key: Key, said: str) -> bool:
    """Whether the row may be missing: the object has ended, or was let go of."""
    if key[0] is Subject.WORKSPACE:
        return said == DETACHED
    if key[0] is Subject.SKILL:
        return said == DROPPED
    return is_end(key[0], said) or key[0] is Subject.WORK_ITEM_REVISION  # told by WORK_ITEM


def _difference(told: _Told, key: Key, how: str) -> Violation:
    subject, id_ = key
    return Violation(
        invariant=Invariant.LOG_GIVES_ROWS,
        subject=told.log.agent_id,
        detail=f"{subject}{f' {id_}' if id_ else ''} is {how}",
    )
