-- put_memory --
insert into working_memories (
    agent_id, revision, last_prompted_revision, active_episode_id, archived_episode_count, state
) values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (agent_id) do update set
    revision = excluded.revision,
    last_prompted_revision = excluded.last_prompted_revision,
    active_episode_id = excluded.active_episode_id,
    archived_episode_count = excluded.archived_episode_count,
    state = excluded.state;

-- archive_episode --
insert into episodes (episode_id, agent_id, end_turn_index, finalized_at, record)
values (?1, ?2, ?3, ?4, ?5);
