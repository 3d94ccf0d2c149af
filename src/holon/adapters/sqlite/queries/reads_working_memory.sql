-- memory_state --
select m.state, w.workspace_id
from agents a
left join working_memories m on m.agent_id = a.agent_id
left join active_workspaces w on w.agent_id = a.agent_id
where a.agent_id = ?1;

-- memory_figures --
select revision, last_prompted_revision, archived_episode_count, active_episode_id
from working_memories where agent_id = ?1;

-- episodes --
select record from episodes
where agent_id = ?1 and end_turn_index < ?2
order by end_turn_index desc, episode_seq desc limit ?3;

-- newest_episode_agents --
select agent_id from (select agent_id from episodes order by episode_seq desc limit ?1)
group by agent_id;
