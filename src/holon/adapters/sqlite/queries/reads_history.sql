-- brief --
select record from briefs where brief_id = ?1;

-- brief_place --
select brief_seq from briefs where brief_id = ?2 and agent_id = ?1;

-- briefs_page --
select record from briefs where agent_id = ?1 and brief_seq < ?2 order by brief_seq desc limit ?3;

-- turns_page --
select turn_id, agent_id, turn_index, message_id, opened_at, work_item_id, resume_count, terminal,
    crash_count, crash_progress
from turns where agent_id = ?1 and turn_index < ?2 order by turn_index desc limit ?3;

-- events_up --
select log_seq, event_seq, created_at, event, turn_id from events
where agent_id = ?1 and event_seq > ?2 and event_seq < ?3 order by event_seq limit ?4;

-- events_down --
select log_seq, event_seq, created_at, event, turn_id from events
where agent_id = ?1 and event_seq > ?2 and event_seq < ?3 order by event_seq desc limit ?4;

-- log_after --
select log_seq, event_seq, created_at, event, turn_id, agent_id from events
where log_seq > ?1 order by log_seq limit ?2;

-- log_epoch --
select epoch from log_epoch where id = 1;

-- last_log_seq --
select max(log_seq) from events;
