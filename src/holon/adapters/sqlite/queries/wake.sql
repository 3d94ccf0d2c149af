-- create_timer --
insert into timers (
    timer_id, agent_id, status, next_fire_at, last_fired_at, fire_count, ended_at, record
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- fire_timer --
-- The slot must be the timer's own: a fire that came twice finds another slot there.
update timers set
    fire_count = fire_count + 1,
    last_fired_at = ?4,
    next_fire_at = ?5,
    status = case when ?5 is null then 'completed' else status end,
    ended_at = case when ?5 is null then ?4 else null end
where timer_id = ?1 and agent_id = ?2 and next_fire_at = ?3;

-- reschedule_timer --
update timers set next_fire_at = ?4 where timer_id = ?1 and agent_id = ?2 and next_fire_at = ?3;

-- cancel_timer --
update timers set status = 'cancelled', next_fire_at = null, ended_at = ?3
where timer_id = ?1 and agent_id = ?2;

-- park_wake_hint --
insert into wake_hints (agent_id, source_key, revision, created_at, record)
values (?1, ?2, ?3, ?4, ?5)
on conflict (agent_id, source_key) do update set
    revision = excluded.revision, created_at = excluded.created_at, record = excluded.record;

-- take_wake_hint --
delete from wake_hints where agent_id = ?1 and source_key = ?2;

-- open_wait --
insert into waits (
    wait_id, agent_id, kind, state, work_item_id, source_id, deadline_at, triggered_by, ended_at,
    record
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- move_wait --
update waits set
    state = ?3,
    triggered_by = coalesce(?4, triggered_by),
    ended_at = case when ?3 in ('active', 'triggered') then null else ?5 end
where wait_id = ?1 and agent_id = ?2;
