-- current_item --
select w.record
from agents a join work_items w on w.work_item_id = a.current_work_item_id
where a.agent_id = ?1 and w.state = 'open';

-- other_open_items --
select record from work_items
where agent_id = ?1 and state = 'open' and work_item_id is not (
    select current_work_item_id from agents where agent_id = ?1
)
order by created_at, work_item_id
limit ?2;

-- completed_items --
select record from work_items
where agent_id = ?1 and state = 'completed'
order by updated_at desc, work_item_id desc
limit ?2;

-- item_counts --
select
    (select count(*) from work_items where agent_id = ?1 and state = 'open'),
    (select count(*) from work_items where agent_id = ?1 and state = 'completed');

-- ended_tasks --
select record, status, updated_at, result_summary, exit_status, failure
from tasks
where agent_id = ?1 and status in ('completed', 'failed', 'cancelled', 'interrupted')
order by updated_at desc, task_id desc
limit ?2;

-- followup_count --
select count(*) from messages
where kind = 'internal_followup' and json_extract(envelope, '$.followup.root_id') = ?1;

-- tool_latencies --
select tool_name, call_count, total_ms, max_ms, last_ms from tool_latency
where agent_id = ?1 order by tool_name limit ?2;

-- unread_results --
select record, status, updated_at, result_summary, exit_status, failure
from tasks where task_id in (
    select envelope ->> '$.task_id' from messages indexed by messages_unread_results
    where agent_id = ?1 and kind = 'task_result' and state in ('queued', 'claimed')
)
order by updated_at desc, task_id desc
limit ?2;

-- unread_tasks --
select record, status, updated_at, result_summary, exit_status, failure
from tasks where task_id in (
    select envelope ->> '$.task_id' from messages
    where kind = 'task_result' and state in ('queued', 'claimed')
);
