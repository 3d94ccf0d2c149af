-- What operator surfaces list and count, found without walking what they do not show.

-- Private agents belong to their parents and appear in no listing.
alter table agents add column is_public integer generated always as (
    archived = 0 and json_extract(identity, '$.visibility') = 'public'
) virtual;

-- Agents that are asleep, paused or stopped cost nothing to count past.
alter table agents add column is_up integer generated always as (
    status <> 'asleep' and status <> 'paused' and status <> 'stopped'
) virtual;

create index agents_public on agents (agent_id) where is_public = 1;
create index agents_up on agents (status, agent_id) where is_public = 1 and is_up = 1;

-- An open item that may not run waits for something.
alter table work_items add column is_waiting integer generated always as (
    can_run = 0 or open_wait_count > 0
) virtual;

create index work_items_ranked on work_items (agent_id, is_waiting, created_at, work_item_id)
where state = 'open';

create index tasks_open_by_agent on tasks (agent_id, updated_at, task_id)
where status in ('queued', 'running', 'cancelling');

create index timers_slots_by_agent on timers (agent_id, next_fire_at, timer_id)
where status = 'active';
create index timers_ended_by_agent on timers (agent_id, ended_at, timer_id)
where ended_at is not null;

-- A rest and a reminder hold nobody back; every other open wait is work that waits visibly.
create index waits_visible on waits (agent_id)
where state in ('active', 'triggered') and kind <> 'rest' and kind <> 'recheck';

create index briefs_failed on briefs (brief_seq) where kind = 'failure';
create index briefs_failed_by_agent on briefs (agent_id, brief_seq) where kind = 'failure';
