-- attached_workspaces --
select w.workspace_id, w.workspace_anchor, w.repo_name, w.created_at, w.updated_at
from attached_workspaces a join workspaces w on w.workspace_id = a.workspace_id
where a.agent_id = ?1 order by a.attached_at, a.workspace_id;

-- active_workspace --
select
    a.workspace_id, w.workspace_anchor, o.execution_root_id, a.execution_root, a.projection_kind,
    o.access_mode, a.cwd, a.occupancy_id
from active_workspaces a
join workspaces w on w.workspace_id = a.workspace_id
join workspace_occupancies o on o.occupancy_id = a.occupancy_id
where a.agent_id = ?1;

-- occupancy_of --
select
    occupancy_id, execution_root_id, workspace_id, holder_agent_id, access_mode, acquired_at,
    released_at
from workspace_occupancies where holder_agent_id = ?1 and released_at is null;

-- root_occupants --
select
    occupancy_id, execution_root_id, workspace_id, holder_agent_id, access_mode, acquired_at,
    released_at
from workspace_occupancies where execution_root_id = ?1 and released_at is null
order by occupancy_id limit ?2;
