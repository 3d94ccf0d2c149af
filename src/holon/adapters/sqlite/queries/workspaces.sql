-- know_workspace --
-- A workspace that is known stays as it is, but for what its name may have become.
insert into workspaces (workspace_id, workspace_anchor, repo_name, created_at, updated_at)
values (?1, ?2, ?3, ?4, ?5)
on conflict (workspace_id) do update set
    repo_name = excluded.repo_name, updated_at = excluded.updated_at;

-- attach_workspace --
insert into attached_workspaces (agent_id, workspace_id, attached_at) values (?1, ?2, ?3);

-- forget_left --
delete from workspace_occupancies
where holder_agent_id = ?1 and execution_root_id = ?2 and released_at is not null;

-- occupy --
insert into workspace_occupancies (
    occupancy_id, execution_root_id, workspace_id, holder_agent_id, access_mode, acquired_at
) values (?1, ?2, ?3, ?4, ?5, ?6);

-- enter_workspace --
insert into active_workspaces (
    agent_id, workspace_id, occupancy_id, projection_kind, execution_root, cwd
) values (?1, ?2, ?3, ?4, ?5, ?6);

-- exit_workspace --
delete from active_workspaces where agent_id = ?1 and workspace_id = ?2;

-- release --
update workspace_occupancies set released_at = ?2
where holder_agent_id = ?1 and released_at is null;

-- detach_workspace --
delete from attached_workspaces where agent_id = ?1 and workspace_id = ?2;
