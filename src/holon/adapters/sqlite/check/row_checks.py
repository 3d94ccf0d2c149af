"""Invariants that a query over the rows can see.

Owns:  I2, I4, I10, I12 and the file itself.
Rule 1: a check yields violations and decides nothing else; an empty answer means the rule holds.
Rule 2: nothing here trusts the schema's own constraints. They are what might have failed.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.decide.authority import OPERATOR_DOORS, derive_authority, derive_trust
from holon.model.errors import DecodeError
from holon.model.ids import TaskId, TimerId
from holon.model.message import MessageEnvelope
from holon.model.provenance import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    WebhookOrigin,
)
from holon.wire.codec import decode

FILE_FAULTS_SHOWN_MAX: Final = 20


def check_file(facts: Facts) -> Iterator[Violation]:
    """What SQLite itself finds wrong with its pages and its foreign keys."""
    found = facts.texts(f"pragma quick_check({FILE_FAULTS_SHOWN_MAX})")
    for (complaint,) in found:
        if complaint != "ok":
            yield _violation(Invariant.FILE_IS_SOUND, "pages", complaint)
    for child, rowid, parent, _ in islice(
        facts.texts("pragma foreign_key_check"), FILE_FAULTS_SHOWN_MAX
    ):
        detail = f"row {rowid or '?'} points to no row of {parent}"
        yield _violation(Invariant.FILE_IS_SOUND, child, detail)


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


def check_provenance(facts: Facts) -> Iterator[Violation]:
    """I12: the operator came through an operator's door, and nobody outranks their own."""
    kinds = facts.texts(
        """select origin_kind, admission_context, authority_class, trust,
               count(*), min(message_id)
           from messages group by 1, 2, 3, 4"""
    )
    for origin, door, authority, trust, count, example in kinds:
        for fault in _provenance_faults(origin, door, authority, trust):
            detail = f"{fault} ({count} such)" if count != "1" else fault
            yield _violation(Invariant.PROVENANCE_HOLDS, example, detail)
    yield from facts.report(
        Invariant.PROVENANCE_HOLDS,
        """select message_id, 'its envelope names another origin, door or authority'
           from messages
           where case when json_valid(envelope) then -- others are told of below
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
            yield _violation(Invariant.PROVENANCE_HOLDS, message_id, detail)


def _provenance_faults(origin: str, door: str, authority: str, trust: str) -> Iterator[str]:
    """Yield what is wrong with one combination of labels, judged as kindly as the rules allow."""
    try:
        given, admission = AuthorityClass(authority), AdmissionContext(door)
        allowed = derive_authority(_ORIGINS[origin], admission)
    except (ValueError, KeyError):
        yield f"the labels {origin}/{door}/{authority} are unknown"
        return
    if origin == "operator" and admission not in OPERATOR_DOORS:
        yield f"claims to be the operator, but came in by {door}"
    if (origin, admission) == _SIGNED_BEFORE:
        allowed = AuthorityClass.INTEGRATION_SIGNAL
    if _RANKS.index(given) > _RANKS.index(allowed):
        yield f"{origin} by {door} is worth {allowed}, not {given}"
    if trust != derive_trust(given):
        yield f"has trust {trust} beside authority {given}"


def _violation(invariant: Invariant, subject: str, detail: str) -> Violation:
    return Violation(invariant=invariant, subject=subject, detail=detail)
