-- remember_commit --
-- For more than one at a time, more rows are added (statements.py); one that is known is left out.
insert or ignore into commits (commit_id, applied_at) values (?, ?);

-- last_event_seq --
select last_seq from event_heads where agent_id = ?1;

-- agent_is_there --
select 1 from agents where agent_id = ?1;

-- move_event_head --
insert into event_heads (agent_id, last_seq) values (?1, ?2)
on conflict (agent_id) do update set last_seq = ?2;

-- append_event --
-- For more than one at a time, more rows are added (statements.py).
insert into events (agent_id, event_seq, created_at, event, turn_id) values (?, ?, ?, ?, ?);

-- agent_fence --
select status, archived, generation from agents where agent_id = ?1;

-- message_state --
select state from messages where message_id = ?1;

-- timer_slot --
select status, next_fire_at from timers where timer_id = ?1;

-- wait_state --
select state from waits where wait_id = ?1;

-- work_item_wait_count --
select open_wait_count from work_items where work_item_id = ?1;

-- work_item_revision --
select revision from work_items where work_item_id = ?1;

-- task_status --
select status from tasks where task_id = ?1;

-- hint_revision --
select revision from wake_hints where agent_id = ?1 and source_key = ?2;
