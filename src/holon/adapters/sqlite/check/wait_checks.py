"""The invariant of waiting: nothing waits for what can no longer come.

Owns:  I7.
Rule 1: a source is alive while it can still end the wait: a task that runs, a timer that will fire,
        an item that is open, an operator who may speak, an outside system with its capability.
Rule 2: a deadline counts until GRACE after it passed, because expiring it is a commit of its own.
        Agents that are not running are not expired, so theirs may lie in the past.
Rule 3: an item is held back by as many waits as are open for it, and by no others.
"""

from collections.abc import Iterator
from typing import Final

from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.model.errors import DecodeError
from holon.model.wait import WaitRecord
from holon.wire.codec import decode

GRACE_MICROS: Final = 60_000_000

_ACTIVE_WAITS: Final = """
select
    w.wait_id,
    w.kind,
    coalesce(w.source_id, ''),
    case
        when w.work_item_id is null then 'open'
        else coalesce((select state from work_items where work_item_id = w.work_item_id), 'missing')
    end,
    w.deadline_at,
    a.status in ('stopped', 'paused', 'booting'),
    case w.kind
        when 'operator' then 1
        when 'recheck' then w.work_item_id is not null
        when 'task' then exists (
            select 1 from tasks where task_id = w.source_id
            and status in ('queued', 'running', 'cancelling'))
        when 'timer' then exists (
            select 1 from timers where timer_id = w.source_id and status = 'active')
        when 'rest' then exists (
            select 1 from timers where timer_id = w.source_id and status = 'active')
        else w.source_id is not null
    end
from waits w join agents a using (agent_id)
where w.state = 'active'
"""

_MISCOUNTED: Final = """
select w.work_item_id, 'counts ' || w.open_wait_count || ' open waits, but '
    || coalesce(o.found, 0) || ' are'
from work_items w left join (
    select work_item_id, count(*) as found from waits
    where kind <> 'rest' and state in ('active', 'triggered') group by 1
) o using (work_item_id)
where w.open_wait_count <> coalesce(o.found, 0)
"""


def check_waits(facts: Facts) -> Iterator[Violation]:
    """I7: every open wait can still end, and a triggered one has its message on the way."""
    for row in facts.rows(_ACTIVE_WAITS):
        wait_id, kind, source, item_state = (str(value) for value in row[:4])
        deadline, is_down, source_lives = row[4:]
        if item_state != "open":
            yield _violation(wait_id, f"belongs to a work item that is {item_state}")
        elif not source_lives and not _deadline_comes(facts, deadline, is_down=bool(is_down)):
            ended = f"source {source} is gone" if source else "it has no source"
            when = "and no deadline" if deadline is None else "and its deadline has passed"
            yield _violation(wait_id, f"waits for a {kind}: {ended} {when}")
    yield from facts.report(
        Invariant.WAITS_CAN_END,
        """select wait_id, 'is triggered, but no message that is still to come names it'
           from waits w where state = 'triggered' and not exists (
               select 1 from messages m
               where m.wait_id = w.wait_id and m.state in ('queued', 'claimed'))""",
    )
    yield from facts.report(Invariant.WAITS_CAN_END, _MISCOUNTED)
    for wait_id, agent_id, kind, text in facts.texts(
        "select wait_id, agent_id, kind, record from waits"
    ):
        if (fault := _record_fault(text, (wait_id, agent_id, kind))) is not None:
            yield _violation(wait_id, fault)


def _record_fault(text: str, row: tuple[str, str, str]) -> str | None:
    try:
        record = decode(text, WaitRecord)
    except DecodeError as error:
        return f"cannot be read: {error}"
    is_its_own = (record.id, record.agent_id, record.kind) == row
    return None if is_its_own else f"has the record of {record.id} ({record.kind})"


def _deadline_comes(facts: Facts, deadline: object, *, is_down: bool) -> bool:
    if not isinstance(deadline, int):
        return False
    return is_down or facts.as_of is None or deadline + GRACE_MICROS > facts.as_of


def _violation(wait_id: str, detail: str) -> Violation:
    return Violation(invariant=Invariant.WAITS_CAN_END, subject=wait_id, detail=detail)
