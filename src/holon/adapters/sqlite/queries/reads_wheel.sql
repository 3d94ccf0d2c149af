-- next_due --
select min(moment) from (
    select min(next_fire_at) as moment from timers where status = 'active' and next_fire_at > ?1
    union all
    select min(deadline_at) from waits
    where deadline_at is not null and state = 'active' and deadline_at > ?1
    union all
    select min(held_until) from work_items
    where can_run = 1 and open_wait_count = 0 and held_until is not null and held_until > ?1
    union all
    select min(recheck_due_at) from work_items
    where recheck_due_at is not null and recheck_due_at > ?1
    union all
    select min(not_before) from messages
    where state = 'queued' and not_before is not null and not_before > ?1
    union all
    select min(budget_until) from agents where budget_until is not null and budget_until > ?1
);

-- anything_due --
-- Whether one of the next three might find a row; each part is the widest one of theirs.
select exists (select 1 from timers where status = 'active' and next_fire_at <= ?1)
    or exists (
        select 1 from waits
        where deadline_at is not null and state = 'active' and deadline_at <= ?1
    )
    or exists (
        select 1 from work_items
        where can_run = 1 and open_wait_count = 0 and held_until is not null and held_until <= ?1
    )
    or exists (
        select 1 from work_items where recheck_due_at is not null and recheck_due_at <= ?1
    )
    or exists (select 1 from activations where last_at > ?1)
    or exists (
        select 1 from messages
        where state = 'queued' and not_before is not null and not_before <= ?1
    )
    or exists (select 1 from agents where budget_until is not null and budget_until <= ?1)
    or exists (select 1 from agents where budget_until is not null and budget_until > ?2);

-- due_timers --
-- A stopped agent takes no tick; its slots stay due for the day it is resumed. The list begins at
-- the moment ?3: after the timer ?4 of that moment, when one is named.
select
    t.record, t.status, t.next_fire_at, t.last_fired_at, t.fire_count,
    exists (
        select 1 from messages m
        where m.timer_id = t.timer_id and m.timer_id is not null
            and m.state in ('queued', 'claimed')
    )
from timers t
join agents a on a.agent_id = t.agent_id
where t.status = 'active' and t.next_fire_at <= ?1 and a.status <> 'stopped'
    and t.next_fire_at >= ?3
    and (
        t.next_fire_at > ?3
        or ?4 is null
        or t.rowid > (select l.rowid from timers l where l.timer_id = ?4)
    )
order by t.next_fire_at, t.rowid
limit ?2;

-- due_timers_of --
-- The order of the tables is fixed: of all that is overdue, only what is this agent's is looked at.
select
    t.record, t.status, t.next_fire_at, t.last_fired_at, t.fire_count,
    exists (
        select 1 from messages m
        where m.timer_id = t.timer_id and m.timer_id is not null
            and m.state in ('queued', 'claimed')
    )
from agents a
cross join timers t on t.agent_id = a.agent_id
where a.agent_id = ?1 and a.status <> 'stopped' and t.status = 'active' and t.next_fire_at <= ?2
order by t.next_fire_at
limit ?3;

-- settled_by --
select max(settled_at) from messages where settled_at is not null and settled_at <= ?1;

-- logged_since --
select created_at from events where log_seq = (select min(log_seq) from events);

-- timers_ahead --
-- Timers that were armed or fired last at a moment that is still to come, as a clock that was set
-- back leaves them. Moments in a record are text: to the second, that is how they sort, too.
select record, status, next_fire_at, last_fired_at, fire_count
from timers
where status = 'active' and next_fire_at > ?1 and timer_id > ?4
    and (last_fired_at > ?1 or substr(record ->> '$.created_at', 1, 19) >= ?2)
order by timer_id
limit ?3;

-- due_waits --
-- A rest is ended by its timer and a recheck by activation; neither runs out. The list begins at
-- the moment ?3: after the wait ?4 of that moment, when one is named.
select w.record, w.state, w.triggered_by, w.ended_at, w.work_item_id
from waits w
join agents a on a.agent_id = w.agent_id
where w.deadline_at is not null and w.state = 'active' and w.deadline_at <= ?1
    and w.kind not in ('rest', 'recheck') and a.status <> 'stopped'
    and w.deadline_at >= ?3
    and (
        w.deadline_at > ?3
        or ?4 is null
        or w.rowid > (select l.rowid from waits l where l.wait_id = ?4)
    )
order by w.deadline_at, w.rowid
limit ?2;

-- due_waits_of --
select w.record, w.state, w.triggered_by, w.ended_at, w.work_item_id
from agents a
cross join waits w on w.agent_id = a.agent_id
where a.agent_id = ?1 and a.status <> 'stopped'
    and w.state = 'active' and w.state in ('active', 'triggered')
    and +w.deadline_at <= ?2 and w.kind not in ('rest', 'recheck')
order by w.deadline_at
limit ?3;

-- due_activations --
-- Whose moment has come since ?4; what came before was found then. No work is offered to an agent the
-- runtime gave up on, nor while a message waits for its moment: that moment, or the commit that lets
-- the message go, leads to the next look. Third in the work parts is a clock that was set back: what
-- was offered in the future is held by nothing. So is a hold that ends later than any budget can
-- make it (?3).
select a.agent_id from agents a
where a.status not in ('stopped', 'paused', 'booting')
    and (a.budget_until is null or a.budget_until <= ?1 or a.budget_until > ?3)
    and a.agent_id in (
        select g.agent_id from agents g
        where g.gave_up = 0
            and g.agent_id in (
                select agent_id from work_items
                where can_run = 1 and open_wait_count = 0 and held_until is not null
                    and held_until <= ?1 and held_until > ?4
                union all
                select agent_id from work_items
                where recheck_due_at is not null and recheck_due_at <= ?1 and recheck_due_at > ?4
                union all
                select w.agent_id
                from activations v join work_items w on w.work_item_id = v.work_item_id
                where v.last_at > ?1 and w.can_run = 1 and w.open_wait_count = 0
            )
            and not exists (
                select 1 from messages m
                where m.agent_id = g.agent_id and m.state = 'queued'
                    and m.not_before is not null and m.not_before > ?1
            )
        union all
        select agent_id from messages
        where state = 'queued' and not_before is not null and not_before <= ?1 and not_before > ?4
        union all
        select agent_id from agents
        where budget_until is not null and budget_until <= ?1 and budget_until > ?4
        union all
        select agent_id from agents where budget_until is not null and budget_until > ?3
    )
    and not exists (
        select 1 from messages m where m.agent_id = a.agent_id and m.state = 'claimed'
    )
    and (
        a.budget_until is not null
        or not exists (
            select 1 from messages m
            where m.agent_id = a.agent_id and m.state = 'queued' and m.not_before is null
        )
    )
limit ?2;
