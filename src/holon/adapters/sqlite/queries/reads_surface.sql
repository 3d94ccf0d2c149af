-- public_agents --
select
    a.identity, a.generation, a.status, a.status_since, a.status_reason, a.sleeping_until,
    a.last_wake_reason, a.current_work_item_id, o.turn_id, a.turn_index,
    q.admitted_count, a.model_round_count, a.input_tokens, a.output_tokens,
    a.model_override, a.last_closure, t.terminal, a.last_brief_at, a.passed_over,
    q.queued_count, a.self_started_count, a.self_started_at, a.gave_up, a.budget_until
from agents a
join queues q on q.agent_id = a.agent_id
left join turns o on o.agent_id = a.agent_id and o.state = 'open'
left join turns t on t.agent_id = a.agent_id and t.turn_index = a.turn_index
where a.is_public = 1 and a.agent_id > ?1
order by a.agent_id
limit ?2;

-- runnable_item --
-- The current item first, when it may run.
select work_item_id from work_items
where work_item_id = ?2 and agent_id = ?1 and state = 'open' and is_waiting = 0
union all
select * from (
    select work_item_id from work_items
    where agent_id = ?1 and state = 'open' and is_waiting = 0
    order by created_at, work_item_id limit 1
)
limit 1;

-- stuck_item --
select record from work_items
where agent_id = ?1 and state = 'open' and is_waiting = 1
order by created_at, work_item_id limit 1;

-- some_open_waits --
select record, state, triggered_by, ended_at, work_item_id from waits
where agent_id = ?1 and state in ('active', 'triggered')
order by rowid
limit ?2;

-- last_continuation --
-- Every turn and every mere sign of life leaves one, so it is among the newest events.
select event from (
    select event_seq, event from events where agent_id = ?1 order by event_seq desc limit ?2
)
where event like '{"kind":"continuation_resolved"%'
order by event_seq desc limit 1;

-- agent_counts --
-- Counting stops at a bound, so that an agent with a long life costs no more than a young one.
select
    q.queued_count,
    (select count(*) from (
        select 1 from work_items where agent_id = ?1 and state = 'open' limit ?2
    )),
    (select count(*) from (
        select 1 from waits where agent_id = ?1 and state in ('active', 'triggered') limit ?2
    )),
    (select count(*) from (
        select 1 from tasks
        where agent_id = ?1 and status in ('queued', 'running', 'cancelling') limit ?2
    )),
    (select count(*) from (
        select 1 from timers where agent_id = ?1 and status = 'active' limit ?2
    )),
    (select count(*) from (select 1 from wake_hints where agent_id = ?1 limit ?2)),
    (select count(*) from (select 1 from briefs where agent_id = ?1 limit ?2)),
    coalesce((select last_seq - floor_seq from event_heads where agent_id = ?1), 0)
from queues q where q.agent_id = ?1;

-- task_place --
select status in ('queued', 'running', 'cancelling'), updated_at from tasks
where task_id = ?2 and agent_id = ?1;

-- open_tasks_page --
select record, status, updated_at, result_summary, exit_status, failure from tasks
where agent_id = ?1 and status in ('queued', 'running', 'cancelling')
    and (updated_at, task_id) < (?2, ?3)
order by updated_at desc, task_id desc
limit ?4;

-- ended_tasks_page --
select record, status, updated_at, result_summary, exit_status, failure from tasks
where agent_id = ?1 and status in ('completed', 'failed', 'cancelled', 'interrupted')
    and (updated_at, task_id) < (?2, ?3)
order by updated_at desc, task_id desc
limit ?4;

-- timer_place --
select status = 'active', coalesce(next_fire_at, ended_at) from timers
where timer_id = ?2 and agent_id = ?1;

-- active_timers_page --
select record, status, next_fire_at, last_fired_at, fire_count from timers
where agent_id = ?1 and status = 'active' and (next_fire_at, timer_id) > (?2, ?3)
order by next_fire_at, timer_id
limit ?4;

-- ended_timers_page --
select record, status, next_fire_at, last_fired_at, fire_count from timers
where agent_id = ?1 and ended_at is not null and (ended_at, timer_id) < (?2, ?3)
order by ended_at desc, timer_id desc
limit ?4;

-- item_place --
select
    w.state = 'open', w.is_waiting, w.created_at, w.updated_at,
    w.state = 'open' and w.work_item_id is a.current_work_item_id
from work_items w join agents a on a.agent_id = w.agent_id
where w.work_item_id = ?2 and w.agent_id = ?1;

-- open_items_page --
select record from work_items
where agent_id = ?1 and state = 'open'
    and (is_waiting, created_at, work_item_id) > (?2, ?3, ?4)
    and work_item_id is not (select current_work_item_id from agents where agent_id = ?1)
order by is_waiting, created_at, work_item_id
limit ?5;

-- completed_items_page --
select record from work_items
where agent_id = ?1 and state = 'completed' and (updated_at, work_item_id) < (?2, ?3)
order by updated_at desc, work_item_id desc
limit ?4;

-- activity --
-- Only partial indexes are walked: agents that are up, tasks that run, waits that are open, and items
-- whose plan needs the operator's input.
with
up (agent_id, status) as (
    select agent_id, status from agents indexed by agents_up
    where is_public = 1 and is_up = 1 limit ?1
),
owing (agent_id) as (
    select * from (
        select distinct agent_id from tasks
        where status in ('queued', 'running', 'cancelling') limit ?1
    )
    union
    select * from (
        select distinct agent_id from waits
        where state in ('active', 'triggered') and kind <> 'rest' and kind <> 'recheck' limit ?1
    )
    union
    select * from (
        select distinct agent_id from work_items indexed by work_items_needing_input
        where state = 'open' and json_extract(record, '$.plan_status') = 'needs_input' limit ?1
    )
    union
    select agent_id from up where status = 'awaiting_task'
),
waiting (agent_id) as (
    select o.agent_id from owing o cross join agents a on a.agent_id = o.agent_id
    where a.is_public = 1 and a.status not in ('booting', 'awake_running', 'paused', 'stopped')
    limit ?1
)
select
    (select count(*) from (select agent_id from up union select agent_id from waiting limit ?1)),
    (select count(*) from up where status in ('booting', 'awake_running')),
    (select count(*) from waiting),
    (select count(*) from (
        select 1 from tasks where status in ('queued', 'running', 'cancelling') limit ?1
    ));

-- statuses --
-- A look at every agent in use, of which there is a bounded number.
select status, count(*) from (
    select status from agents indexed by agents_in_use where archived = 0 limit ?1
)
group by status;

-- kept --
-- One short row for each agent there ever was, as far as the bound.
select
    (select coalesce(sum(queued_count), 0) from (select queued_count from queues limit ?1)),
    (select coalesce(sum(kept_count), 0) from (
        select last_seq - floor_seq as kept_count from event_heads limit ?1
    ));

-- last_failure --
-- What the operator ended did not fail, and what an agent has done well since is not news.
select f.record from briefs f
where f.brief_seq in (
    select brief_seq from briefs
    where kind = 'failure' and json_extract(record, '$.failure.kind') is not 'operator_abort'
    order by brief_seq desc limit ?1
) and not exists (
    select 1 from turns t
    where t.agent_id = f.agent_id and t.state = 'settled' and t.settled_at > f.created_at
        and json_extract(t.terminal, '$.kind') = 'completed'
)
order by f.brief_seq desc limit 1;

-- last_failure_of --
select record from briefs
where agent_id = ?1 and kind = 'failure'
    and json_extract(record, '$.failure.kind') is not 'operator_abort'
order by brief_seq desc limit 1;

-- tainted_instructions --
select path, turn_id, changed_at, change_count from tainted_instructions where agent_id = ?1;
