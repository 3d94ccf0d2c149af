-- skill_activations --
-- Newest first, so that a bounded look misses the oldest.
select
    agent_id, entrypoint_path, load_reason, skill_name, path, source, state, is_lasting, turn_id,
    turn_index, activated_at
from skill_activations where agent_id = ?1
order by activated_at desc, entrypoint_path desc, load_reason desc limit ?2;

-- activations_of --
select
    agent_id, entrypoint_path, load_reason, skill_name, path, source, state, is_lasting, turn_id,
    turn_index, activated_at
from skill_activations where agent_id = ?1 and entrypoint_path = ?2;

-- has_skills_to_restore --
select 1 from skill_activations
where state = 'session_active' and source <> 'restored' limit 1;
