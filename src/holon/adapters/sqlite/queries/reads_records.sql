-- turn --
select turn_id, agent_id, turn_index, message_id, opened_at, work_item_id, resume_count, terminal,
    crash_count, crash_progress
from turns where turn_id = ?1;

-- entries --
select turn_id, position, created_at, data from transcript where turn_id = ?1 order by position;

-- calls --
select
    effect_id, call_id, turn_id, round, position, name, input, state, started_at, finished_at,
    work_item_id, receipt
from tool_calls where turn_id = ?1 order by round, position;

-- agent_context --
select history_from_turn, compression_epoch, recap from agent_contexts where agent_id = ?1;

-- recent --
select turn_id, turn_index
from turns where agent_id = ?1 and state = 'settled' and turn_index >= ?3
order by turn_index desc limit ?2;

-- recent_turns --
select turn_id, agent_id, turn_index, message_id, opened_at, work_item_id, resume_count, terminal,
    crash_count, crash_progress
from turns where agent_id = ?1 and turn_index >= ?2 and state = 'settled';

-- recent_entries --
select e.turn_id, e.position, e.created_at, e.data
from turns t cross join transcript e on e.turn_id = t.turn_id
where t.agent_id = ?1 and t.turn_index >= ?2 and t.state = 'settled'
order by t.turn_index, e.position;

-- recent_calls --
select
    c.effect_id, c.call_id, c.turn_id, c.round, c.position, c.name, c.input, c.state,
    c.started_at, c.finished_at, c.work_item_id, c.receipt
from turns t cross join tool_calls c on c.turn_id = t.turn_id
where t.agent_id = ?1 and t.turn_index >= ?2 and t.state = 'settled'
order by t.turn_index, c.round, c.position;

-- last_reported_usage --
-- A provider may never report any: the look back is bounded, or a long life would be walked through.
select usage from (
    select turn_index, usage from turns
    where agent_id = ?1 and state = 'settled'
    order by turn_index desc limit ?2
)
where json_extract(usage, '$.input_tokens') + json_extract(usage, '$.output_tokens') > 0
order by turn_index desc limit 1;

-- last_exchange --
-- Which model was meant last, and which was asked last in fact. Newest first, so that one row is read.
select
    coalesce(e.data ->> '$.spoke.timeline.requested_model_ref', e.data ->> '$.timeline.requested_model_ref'),
    coalesce(e.data ->> '$.spoke.timeline.active_model_ref', e.data ->> '$.timeline.active_model_ref')
from turns t cross join transcript e on e.turn_id = t.turn_id
where t.agent_id = ?1
    and t.turn_index > (select max(turn_index) from turns where agent_id = ?1) - ?2
    and coalesce(e.data ->> '$.spoke.timeline.requested_model_ref', e.data ->> '$.timeline.requested_model_ref')
        is not null
order by t.turn_index desc, e.position desc limit 1;

-- briefs --
select record from (
    select brief_seq, record from briefs where agent_id = ?1 order by brief_seq desc limit ?2
) order by brief_seq;

-- events_after --
select log_seq, event_seq, created_at, event, turn_id from events
where agent_id = ?1 and event_seq > ?2 order by event_seq limit ?3;

-- event_bounds --
select floor_seq, last_seq from event_heads where agent_id = ?1;

-- task --
select record, status, updated_at, result_summary, exit_status, failure
from tasks where task_id = ?1;

-- open_tasks --
select record, status, updated_at, result_summary, exit_status, failure
from tasks indexed by tasks_open where status in ('queued', 'running', 'cancelling')
order by +rowid;

-- timer --
select record, status, next_fire_at, last_fired_at, fire_count from timers where timer_id = ?1;

-- work_item --
select record from work_items where work_item_id = ?1;

-- waits_on --
select record, state, triggered_by, ended_at, work_item_id from waits
where source_id = ?1 and source_id is not null and state in ('active', 'triggered')
order by rowid;

-- item_waits --
select record, state, triggered_by, ended_at, work_item_id from waits
where work_item_id = ?1 and work_item_id is not null and state in ('active', 'triggered')
order by rowid;
