-- note_tainted --
insert into tainted_instructions (agent_id, path, turn_id, changed_at, change_count)
values (?1, ?2, ?3, ?4, 1)
on conflict (agent_id) do update set
    path = excluded.path,
    turn_id = excluded.turn_id,
    changed_at = excluded.changed_at,
    change_count = change_count + 1;
