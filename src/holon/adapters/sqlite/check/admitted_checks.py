"""The invariant of admission: what was let in is there, is counted, or is known to have ended.

Owns:  I1.
Rule 1: a message that is missing must be told of by a log, up to its end. A log that tells of it
        without its end excuses nothing: logs are cut from the old end, and the end comes last.
Rule 2: one that no log tells of may have been pruned, if the agent that held it has pruned any: its
        log has a floor, and it let in more messages than its rows and its log account for.
Rule 3: which agent held it is known if an event or the caller says so. If not, any agent may have
        that fits rule 2, unless something older than the commit that let the message in is still in
        its log. In all, no more are excused than were pruned.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.decide.audit_fold import Subject, fold, is_end
from holon.model.errors import DecodeError
from holon.model.event import Event
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
    """I1: whoever was told that a message is in finds it, or finds in the log how it ended."""
    queues = list(_queues(facts))
    for queue in queues:
        for fault in _count_faults(queue):
            yield _violation(queue.agent_id, fault)
    missing = _missing(facts)
    if not missing:
        return
    pruning = {queue.agent_id: queue for queue in queues if queue.pruned_count}
    told = _Told(facts, missing)
    excused: list[str] = []
    for message_id, lost in sorted(missing.items()):
        state = told.states.get(message_id)
        owner = told.agents.get(message_id, lost.agent_id)
        if state is None and _may_be_pruned(lost, owner, pruning):
            excused.append(message_id)
        elif state is None or not is_end(Subject.MESSAGE, state):
            yield _violation(message_id, f"{lost.promise}, but it is gone")
    pruned_count = sum(queue.pruned_count for queue in pruning.values())
    if len(excused) > pruned_count:
        for message_id in excused:
            detail = f"is gone like {len(excused)} in all, but only {pruned_count} were pruned"
            yield _violation(message_id, f"{missing[message_id].promise}, but it {detail}")


def _queues(facts: Facts) -> Iterator[_Queue]:
    told = {agent: (int(count), first) for agent, count, first in facts.texts(_TOLD)}
    untold = {agent: int(count) for agent, count in facts.texts(_UNTOLD)}
    queued = {agent: int(count) for agent, count in facts.texts(_QUEUED)}
    for agent_id, floor, queued_count, admitted_count in facts.texts(_QUEUES):
        told_count, first = told.get(agent_id, (0, ""))
        accounted = told_count + untold.get(agent_id, 0)
        yield _Queue(
            agent_id=agent_id,
            floor=int(floor),
            queued=(_number(queued_count), queued.get(agent_id, 0)),
            admitted=(_number(admitted_count), accounted),
            whole_from=_number(first),
        )


def _count_faults(queue: _Queue) -> Iterator[str]:
    """What nobody counts is never taken from the queue."""
    counted, found = queue.queued
    if counted is None:
        yield "has no queue"
        return
    if counted != found:
        yield f"counts {counted} queued messages, but {found} are"
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


class _Told:
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
        for message_id, told in events.items():
            state = fold(told).states.get((Subject.MESSAGE, message_id))
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


def _violation(subject: str, detail: str) -> Violation:
    return Violation(invariant=Invariant.ADMITTED_STAYS, subject=subject, detail=detail)
