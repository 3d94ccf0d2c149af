-- activate_skill --
-- What was session_active before stays so, however the turn ends.
insert into skill_activations (
    agent_id, entrypoint_path, load_reason, skill_name, path, source, state, is_lasting,
    turn_id, turn_index, activated_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
on conflict (agent_id, entrypoint_path, load_reason) do update set
    skill_name = excluded.skill_name, path = excluded.path, source = excluded.source,
    state = excluded.state, is_lasting = excluded.is_lasting, turn_id = excluded.turn_id,
    turn_index = excluded.turn_index, activated_at = excluded.activated_at;

-- keep_turn_skills --
update skill_activations set state = 'session_active', is_lasting = 1
where agent_id = ?1 and state = 'turn_active';

-- drop_turn_skills --
delete from skill_activations where agent_id = ?1 and state = 'turn_active' and is_lasting = 0;

-- restore_skills --
update skill_activations set source = 'restored'
where state = 'session_active' and source <> 'restored';
