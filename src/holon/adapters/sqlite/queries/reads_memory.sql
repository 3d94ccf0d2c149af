-- memory_sources_after --
select change_seq, kind, source_id, evidence_rank from memory_sources
where agent_id = ?1 and change_seq > ?2 order by change_seq limit ?3;

-- memory_sources_named --
select s.change_seq, s.kind, s.source_id, s.evidence_rank
from json_each(?2) j cross join memory_sources s
    on s.agent_id = ?1 and s.kind = j.value ->> 0 and s.source_id = j.value ->> 1;

-- memory_sources_bounds --
select
    coalesce((select max(change_seq) from memory_sources where agent_id = ?1), 0),
    coalesce((select floor_seq from memory_floors where agent_id = ?1), 0);

-- memory_sources_left --
select count(*) from memory_sources where agent_id = ?1 and change_seq > ?2;

-- memory_briefs --
select brief_id, record from briefs where brief_id in (select value from json_each(?1));

-- memory_work_items --
select work_item_id, record from work_items where work_item_id in (select value from json_each(?1));

-- memory_tasks --
select record, status, updated_at, result_summary, exit_status, failure
from tasks where task_id in (select value from json_each(?1));

-- memory_calls --
select
    effect_id, call_id, turn_id, round, position, name, input, state, started_at, finished_at,
    work_item_id, null
from tool_calls where effect_id in (select value from json_each(?1));

-- memory_episodes --
select episode_id, record from episodes where episode_id in (select value from json_each(?1));

-- memory_workspaces --
select w.workspace_id, w.workspace_anchor, w.repo_name, w.created_at, w.updated_at
from attached_workspaces a join workspaces w on w.workspace_id = a.workspace_id
where a.agent_id = ?2 and a.workspace_id in (select value from json_each(?1));
