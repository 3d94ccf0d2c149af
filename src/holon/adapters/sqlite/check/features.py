"""Invariants of waits, timers, workspaces and skills.

Owns:  I7: every wait can still end; I13: an active timer fires again, on the grid of its schedule;
       I14: active workspaces are held; I15: active skills were used.
Rule 1: a source is alive while it can still end the wait: a running task, a timer that will fire,
        an open item, an operator who may write, an outside system with its capability.
Rule 2: a deadline counts until GRACE after it passed, because expiring it is a commit of its own.
        Agents that are not running are not expired, so theirs may lie in the past.
Rule 3: an item is blocked by exactly as many waits as are open for it.
Rule 4: a cron timer's moment is not recomputed: the rules of its time zone may have changed since
        the timer was advanced.
Rule 5: no check trusts the schema's constraints: they are what might have failed.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from holon.adapters.sqlite.check.facts import Facts, Invariant, Violation
from holon.decide.wake.cron import BadCronError, read_fields
from holon.model.errors import DecodeError
from holon.model.values import from_micros
from holon.model.wake import Cron, Every, OneShot, TimerRecord, WaitRecord
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
_ACTIVE_UNATTACHED: Final = """
select agent_id, 'is in workspace ' || workspace_id || ', which is not attached to it'
from active_workspaces a where not exists (
    select 1 from attached_workspaces t
    where t.agent_id = a.agent_id and t.workspace_id = a.workspace_id)
"""
_ACTIVE_UNHELD: Final = """
select a.agent_id, 'is in workspace ' || a.workspace_id || ' without a hold on it: '
    || coalesce('held by ' || o.holder_agent_id
        || iif(o.released_at is null, '', ', released') || ' for ' || o.workspace_id, 'no row')
from active_workspaces a left join workspace_occupancies o using (occupancy_id)
where o.occupancy_id is null or o.released_at is not null
    or o.holder_agent_id is not a.agent_id or o.workspace_id is not a.workspace_id
"""
_HELD_BY_NOBODY: Final = """
select holder_agent_id, 'holds ' || execution_root_id || ' but is not in it'
from workspace_occupancies o where released_at is null and not exists (
    select 1 from active_workspaces a where a.occupancy_id = o.occupancy_id)
"""
_HELD_TWICE: Final = """
select execution_root_id, 'is held by ' || group_concat(holder_agent_id, ', ')
    || ', one of them alone'
from workspace_occupancies where released_at is null
group by execution_root_id
having count(*) > 1 and sum(access_mode = 'exclusive_write') > 0
"""
_CWD_OUTSIDE: Final = """
select agent_id, 'works in ' || cwd || ', outside of ' || execution_root from active_workspaces
where cwd <> execution_root
    and substr(cwd, 1, length(rtrim(execution_root, '/')) + 1) <> rtrim(execution_root, '/') || '/'
"""
_WITHOUT_OPEN_TURN: Final = """
select s.agent_id, 'uses ' || s.entrypoint_path || ' in turn ' || s.turn_id
    || ', which is not open'
from skill_activations s where s.state = 'turn_active' and not exists (
    select 1 from turns t
    where t.turn_id = s.turn_id and t.agent_id = s.agent_id and t.state = 'open')
"""
_NOT_LASTING: Final = """
select agent_id, 'keeps ' || entrypoint_path || ' although no turn has earned it'
from skill_activations where state = 'session_active' and is_lasting <> 1
"""
_UNKNOWN: Final = """
select agent_id, 'uses ' || entrypoint_path || ' as ' || state || ' for ' || load_reason
    || ' (' || source || ')'
from skill_activations
where state not in ('turn_active', 'session_active')
    or load_reason not in ('read_skill_md', 'run_skill_script')
    or source not in ('explicit', 'implicit_from_catalog', 'restored', 'inherited')
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


def check_timers(facts: Facts) -> Iterator[Violation]:
    """I13: every active timer has a schedule that can be read, and stands on its grid."""
    stored = facts.texts(
        "select timer_id, next_fire_at, record from timers where status = 'active'"
    )
    for timer_id, next_fire_at, text in stored:
        if (fault := _fault(next_fire_at, text)) is not None:
            yield Violation(invariant=Invariant.TIMERS_COME_ROUND, subject=timer_id, detail=fault)


def _fault(next_fire_at: str, text: str) -> str | None:
    try:
        timer = decode(text, TimerRecord)
    except DecodeError as error:
        return f"cannot be read: {error}"
    match timer.schedule:
        case OneShot():
            return None
        case Every(interval_ms=interval_ms):
            distance = from_micros(int(next_fire_at)) - timer.anchor_at
            on_grid = interval_ms > 0 and not distance % timedelta(milliseconds=interval_ms)
            return None if on_grid else f"stands off its grid of {interval_ms} ms"
        case Cron(expression=expression):
            try:
                read_fields(expression)
            except BadCronError as bad:
                return str(bad)
            return None


def check_workspaces(facts: Facts) -> Iterator[Violation]:
    """I14: an agent is in one attached workspace at most, holds its root, and stays inside."""
    for query in (_ACTIVE_UNATTACHED, _ACTIVE_UNHELD, _HELD_BY_NOBODY, _HELD_TWICE, _CWD_OUTSIDE):
        yield from facts.report(Invariant.PLACES_ARE_HELD, query)


def check_skills(facts: Facts) -> Iterator[Violation]:
    """I15: a skill is turn_active in the agent's open turn, or session_active after a good one."""
    for query in (_WITHOUT_OPEN_TURN, _NOT_LASTING, _UNKNOWN):
        yield from facts.report(Invariant.SKILLS_ARE_USED, query)
