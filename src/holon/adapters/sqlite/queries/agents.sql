-- create_agent --
insert into agents (agent_id, identity, archived, status, status_since, status_reason)
values (?1, ?2, ?3, ?4, ?5, 'created');

-- set_status --
update agents set
    status = :status,
    status_since = :at,
    status_reason = :reason,
    sleeping_until = :sleeping_until,
    generation = coalesce(:new_generation, generation),
    last_wake_reason = coalesce(:wake_reason, last_wake_reason)
where agent_id = :agent_id;

-- set_focus --
update agents set current_work_item_id = ?2 where agent_id = ?1;

-- set_model_override --
update agents set model_override = ?2 where agent_id = ?1;

-- archive --
update agents set archived = 1 where agent_id = ?1 and archived = 0;

-- hold_lane --
-- The claim and the fence move together.
update agents set generation = ?2, passed_over = ?3 where agent_id = ?1;

-- count_passed_over --
update agents set passed_over = ?2 where agent_id = ?1;

-- raise_generation --
update agents set generation = ?2 where agent_id = ?1;

-- count_turn --
update agents set
    turn_index = ?2,
    model_round_count = model_round_count + ?3,
    input_tokens = input_tokens + ?4,
    output_tokens = output_tokens + ?5
where agent_id = ?1;

-- record_closure --
update agents set last_closure = ?2 where agent_id = ?1;

-- brief_told --
update agents set last_brief_at = ?2 where agent_id = ?1;

-- append_brief --
insert into briefs (brief_id, agent_id, turn_id, kind, created_at, record)
values (?1, ?2, ?3, ?4, ?5, ?6);
