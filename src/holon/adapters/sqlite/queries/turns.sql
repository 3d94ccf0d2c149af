-- open_turn --
insert into turns (
    turn_id, agent_id, turn_index, message_id, work_item_id, opened_at, resume_count, state,
    generation
) values (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open',
    coalesce((select generation from agents where agent_id = ?2), 0)
);

-- resume_turn --
update turns set generation = ?3, resume_count = ?4, crash_count = ?5, crash_progress = ?6
where turn_id = ?1 and agent_id = ?2 and state = 'open';

-- append_transcript --
insert into transcript (turn_id, position, created_at, data) values (?1, ?2, ?3, ?4);

-- start_tool_call --
insert into tool_calls (
    effect_id, call_id, turn_id, round, position, name, input, state, started_at, work_item_id
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'started', ?8, ?9);

-- finish_tool_call --
update tool_calls set state = ?3, receipt = ?4, finished_at = ?5, duration_ms = ?6
where effect_id = ?1 and turn_id = ?2;

-- count_tool_call --
insert into tool_latency (agent_id, tool_name, call_count, total_ms, max_ms, last_ms)
values (?1, ?2, 1, ?3, ?3, ?3)
on conflict (agent_id, tool_name) do update set
    call_count = call_count + 1,
    total_ms = total_ms + excluded.last_ms,
    max_ms = max(max_ms, excluded.last_ms),
    last_ms = excluded.last_ms;

-- settle_turn --
update turns
set state = 'settled', settled_at = ?3, terminal = ?4, usage = ?5, round_count = ?6, deferred = ?7 * turn_index
where turn_id = ?1 and agent_id = ?2;
