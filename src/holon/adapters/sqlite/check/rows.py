"""Invariants that single queries over the rows verify.

Owns:  I2, I4, I8, I10, I12, unreadable briefs and the file itself.
Rule 1: a check yields violations and decides nothing else; no violations means that the rule holds.
Rule 2: no check trusts the schema's constraints: they are what might have failed.
Rule 3: every row the runtime could fail to read is found here first.
Rule 4: a column derived from a record equals what the record says, since the scheduler reads the
        column.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from holon.adapters.sqlite.check.facts import Facts, Invariant, Violation
from holon.adapters.sqlite.database.row_codec import can_run, micros_or_none, recheck_due_at
from holon.decide.queue.authority import OPERATOR_CONTEXTS, derive_authority, derive_trust
from holon.model.errors import DecodeError
from holon.model.events.briefs import BriefRecord
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    MessageEnvelope,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    WebhookOrigin,
)
from holon.model.tasks import TaskRecord
from holon.model.values import TaskId, TimerId
from holon.model.work import WorkItemRecord
from holon.wire.codec import decode

FILE_FAULTS_SHOWN_MAX: Final = 20
_ORIGINS: Final[Mapping[str, Origin]] = MappingProxyType(
    {
        "operator": OperatorOrigin(),
        "channel": ChannelOrigin(channel_id=""),
        "webhook": WebhookOrigin(source=""),
        "callback": CallbackOrigin(descriptor_id=""),
        "timer": TimerOrigin(timer_id=TimerId("")),
        "system": SystemOrigin(subsystem=""),
        "task": TaskOrigin(task_id=TaskId("")),
    }
)

# Earlier versions wrote a signed webhook down like this; its signature was verified all the same.
_SIGNED_BEFORE: Final = ("webhook", AdmissionContext.PUBLIC_UNAUTHENTICATED)
_RANKS: Final = (
    AuthorityClass.EXTERNAL_EVIDENCE,
    AuthorityClass.INTEGRATION_SIGNAL,
    AuthorityClass.RUNTIME_INSTRUCTION,
    AuthorityClass.OPERATOR_INSTRUCTION,
)


def check_file(facts: Facts) -> Iterator[Violation]:
    """What SQLite itself finds wrong with its pages and its foreign keys."""
    complaints = facts.texts(f"pragma quick_check({FILE_FAULTS_SHOWN_MAX})")
    for (complaint,) in complaints:
        if complaint != "ok":
            yield _row_violation(Invariant.FILE_IS_SOUND, "pages", complaint)
    for child, rowid, parent, _ in islice(
        facts.texts("pragma foreign_key_check"), FILE_FAULTS_SHOWN_MAX
    ):
        detail = f"row {rowid or '?'} points to no row of {parent}"
        yield _row_violation(Invariant.FILE_IS_SOUND, child, detail)


def check_one_turn_each(facts: Facts) -> Iterator[Violation]:
    """I2: a message settles at most one turn; those that were put off do not count."""
    return facts.report(
        Invariant.ONE_TURN_EACH,
        """select message_id, 'settled ' || count(*) || ' turns: ' || group_concat(turn_id, ', ')
           from turns where state = 'settled' and deferred = 0
           group by message_id having count(*) > 1""",
    )


def check_claims(facts: Facts) -> Iterator[Violation]:
    """I4: a claim belongs to the lane that holds the agent, and to its one open turn."""
    yield from facts.report(
        Invariant.CLAIMS_ARE_HELD,
        """select m.agent_id, m.message_id || ' is claimed by generation '
               || coalesce(m.claimed_generation, 'none') || ', the agent is at ' || a.generation
           from messages m join agents a using (agent_id)
           where m.state = 'claimed' and m.claimed_generation is not a.generation""",
    )
    yield from facts.report(
        Invariant.CLAIMS_ARE_HELD,
        """select m.agent_id, m.message_id || ' is claimed but has no open turn' from messages m
           where m.state = 'claimed' and not exists (
               select 1 from turns t where t.message_id = m.message_id and t.state = 'open')""",
    )
    yield from facts.report(
        Invariant.CLAIMS_ARE_HELD,
        """select t.agent_id, t.turn_id || ' is open but its message is '
               || coalesce(m.state, 'missing')
           from turns t left join messages m using (message_id)
           where t.state = 'open' and m.state is not 'claimed'""",
    )
    yield from facts.report(
        Invariant.CLAIMS_ARE_HELD,
        """select agent_id, 'holds ' || count(*) || ' claimed messages' from messages
           where state = 'claimed' group by agent_id having count(*) > 1""",
    )


def check_ticks(facts: Facts) -> Iterator[Violation]:
    """I10: a reason to tick that still waits is not queued again."""
    yield from facts.report(
        Invariant.TICKS_COALESCE,
        """select agent_id, count(*) || ' ticks of key ' || tick_key || ' are pending'
           from messages where tick_key is not null and state in ('queued', 'claimed')
           group by agent_id, tick_key having count(*) > 1""",
    )
    yield from facts.report(
        Invariant.TICKS_COALESCE,
        """select agent_id, count(*) || ' ticks of timer ' || timer_id || ' are queued'
           from messages where timer_id is not null and state = 'queued'
           group by agent_id, timer_id having count(*) > 1""",
    )


def check_provenance(facts: Facts) -> Iterator[Violation]:
    """I12: operator messages came by an operator surface, and no authority exceeds its surface."""
    kinds = facts.texts(
        """select origin_kind, admission_context, authority_class, trust,
               count(*), min(message_id)
           from messages group by 1, 2, 3, 4"""
    )
    for origin, door, authority, trust, count, example in kinds:
        for fault in _provenance_faults(origin, door, authority, trust):
            detail = f"{fault} ({count} such)" if count != "1" else fault
            yield _row_violation(Invariant.PROVENANCE_HOLDS, example, detail)
    yield from facts.report(
        Invariant.PROVENANCE_HOLDS,
        """select message_id, 'its envelope names another origin, door or authority'
           from messages
           where case when json_valid(envelope) then -- others are reported below
               json_extract(envelope, '$.origin.kind') is not origin_kind
               or json_extract(envelope, '$.admission_context') is not admission_context
               or json_extract(envelope, '$.authority_class') is not authority_class
               or json_extract(envelope, '$.trust') is not trust end""",
    )
    for message_id, envelope in facts.texts("select message_id, envelope from messages"):
        try:
            decode(envelope, MessageEnvelope)
        except DecodeError as error:
            detail = f"its envelope cannot be read: {error}"
            yield _row_violation(Invariant.PROVENANCE_HOLDS, message_id, detail)


def _provenance_faults(origin: str, context: str, authority: str, trust: str) -> Iterator[str]:
    """Yield what is wrong with one combination of labels, judged as kindly as the rules allow."""
    try:
        labelled, admission = AuthorityClass(authority), AdmissionContext(context)
        allowed = derive_authority(_ORIGINS[origin], admission)
    except (ValueError, KeyError):
        yield f"the labels {origin}/{context}/{authority} are unknown"
        return
    if origin == "operator" and admission not in OPERATOR_CONTEXTS:
        yield f"claims to be the operator, but came in by {context}"
    if (origin, admission) == _SIGNED_BEFORE:
        allowed = AuthorityClass.INTEGRATION_SIGNAL
    if _RANKS.index(labelled) > _RANKS.index(allowed):
        yield f"{origin} by {context} is worth {allowed}, not {labelled}"
    if trust != derive_trust(labelled):
        yield f"has trust {trust} beside authority {labelled}"


def _row_violation(invariant: Invariant, subject: str, detail: str) -> Violation:
    return Violation(invariant=invariant, subject=subject, detail=detail)


def check_tasks(facts: Facts) -> Iterator[Violation]:
    """I8: a task has ended, or it has a record that says what runs and for whom."""
    stored = facts.texts("select task_id, agent_id, kind, status, record from tasks")
    for task_id, agent_id, kind, status, text in stored:
        try:
            record = decode(text, TaskRecord)
        except DecodeError as error:
            yield _record_violation(Invariant.TASKS_ARE_KNOWN, task_id, f"is {status}: {error}")
            continue
        if (record.id, record.agent_id, record.kind) != (task_id, agent_id, kind):
            detail = f"is {status} with the record of {record.id} ({record.kind})"
            yield _record_violation(Invariant.TASKS_ARE_KNOWN, task_id, detail)


def check_work_items(facts: Facts) -> Iterator[Violation]:
    """I8: a work item has a record, and comes up when the record says so."""
    stored = facts.texts(
        "select work_item_id, agent_id, state, can_run, recheck_due_at, record from work_items"
    )
    for item_id, agent_id, state, runs, due_at, text in stored:
        try:
            record = decode(text, WorkItemRecord)
        except DecodeError as error:
            yield _record_violation(Invariant.TASKS_ARE_KNOWN, item_id, f"is {state}: {error}")
            continue
        for fault in _item_faults(record, item=(item_id, agent_id), runs=runs, due_at=due_at):
            yield _record_violation(Invariant.TASKS_ARE_KNOWN, item_id, f"is {state} {fault}")


def _item_faults(
    record: WorkItemRecord, *, item: tuple[str, str], runs: str, due_at: str
) -> Iterator[str]:
    if (record.id, record.agent_id) != item:
        yield f"with the record of {record.id} ({record.agent_id})"
    if runs != str(int(can_run(record))):
        yield f"and its row says can_run = {runs}, against its record"
    due = micros_or_none(recheck_due_at(record))
    if due_at != ("" if due is None else str(due)):
        yield f"and its row says recheck_due_at = {due_at or 'never'}, against its record"


def check_briefs(facts: Facts) -> Iterator[Violation]:
    """What an agent said can be read."""
    for brief_id, text in facts.texts("select brief_id, record from briefs"):
        try:
            decode(text, BriefRecord)
        except DecodeError as error:
            yield _record_violation(Invariant.FILE_IS_SOUND, brief_id, f"cannot be read: {error}")


def _record_violation(invariant: Invariant, subject: str, detail: str) -> Violation:
    return Violation(invariant=invariant, subject=subject, detail=detail)
