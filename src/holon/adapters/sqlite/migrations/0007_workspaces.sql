-- Where agents work. An agent without an active workspace works at home, which has no row.

-- The projects this host knows. They outlive every agent's use of them.
create table workspaces (
    workspace_id text not null primary key,
    workspace_anchor text not null,
    repo_name text,
    created_at integer not null,
    updated_at integer not null,
    constraint workspaces_anchor_is_absolute check (substr(workspace_anchor, 1, 1) = '/')
) strict, without rowid;

create unique index workspaces_one_per_anchor on workspaces (workspace_anchor);

create trigger workspaces_stay_what_they_are
before update of workspace_id, workspace_anchor, created_at on workspaces
when new.workspace_id <> old.workspace_id or new.workspace_anchor <> old.workspace_anchor
    or new.created_at <> old.created_at
begin select raise(abort, 'workspaces_stay_what_they_are'); end;

create trigger workspaces_are_kept
before delete on workspaces
begin select raise(abort, 'workspaces_are_kept'); end;

-- Which of them an agent may use.
create table attached_workspaces (
    agent_id text not null references agents (agent_id),
    workspace_id text not null references workspaces (workspace_id),
    attached_at integer not null,
    primary key (agent_id, workspace_id)
) strict, without rowid;

-- Who is under an execution root, and whether anybody else may be. One row is kept of those who
-- left a root: the newest of each agent.
create table workspace_occupancies (
    occupancy_id text not null primary key,
    execution_root_id text not null,
    workspace_id text not null references workspaces (workspace_id),
    holder_agent_id text not null references agents (agent_id),
    access_mode text not null,
    acquired_at integer not null,
    released_at integer,
    constraint workspace_occupancies_mode_is_known check (
        access_mode = 'shared_read' or access_mode = 'exclusive_write'
    )
) strict, without rowid;

create unique index workspace_occupancies_one_per_holder
on workspace_occupancies (holder_agent_id) where released_at is null;
create index workspace_occupancies_open
on workspace_occupancies (execution_root_id) where released_at is null;
create index workspace_occupancies_left
on workspace_occupancies (holder_agent_id, execution_root_id) where released_at is not null;

create trigger workspace_occupancies_exclude_each_other
before insert on workspace_occupancies
when exists (
    select 1 from workspace_occupancies o
    where o.execution_root_id = new.execution_root_id and o.released_at is null
        and (o.access_mode = 'exclusive_write' or new.access_mode = 'exclusive_write')
)
begin select raise(abort, 'workspace_occupancies_exclude_each_other'); end;

create trigger workspace_occupancies_end_once
before update on workspace_occupancies when old.released_at is not null
begin select raise(abort, 'workspace_occupancies_end_once'); end;

create trigger workspace_occupancies_open_are_kept
before delete on workspace_occupancies when old.released_at is null
begin select raise(abort, 'workspace_occupancies_open_are_kept'); end;

-- The workspace an agent is in: at most one, attached, and held.
create table active_workspaces (
    agent_id text not null primary key,
    workspace_id text not null,
    occupancy_id text not null references workspace_occupancies (occupancy_id),
    projection_kind text not null,
    execution_root text not null,
    cwd text not null,
    foreign key (agent_id, workspace_id) references attached_workspaces (agent_id, workspace_id),
    constraint active_workspaces_projection_is_known check (
        projection_kind = 'canonical_root' or projection_kind = 'git_worktree_root'
    ),
    constraint active_workspaces_root_is_absolute check (substr(execution_root, 1, 1) = '/'),
    constraint active_workspaces_cwd_is_inside check (
        cwd = execution_root
        or substr(cwd, 1, length(rtrim(execution_root, '/')) + 1)
        = rtrim(execution_root, '/') || '/'
    )
) strict, without rowid;

create unique index active_workspaces_one_per_occupancy on active_workspaces (occupancy_id);

create trigger attached_workspaces_active_stays
before delete on attached_workspaces
when exists (
    select 1 from active_workspaces w
    where w.agent_id = old.agent_id and w.workspace_id = old.workspace_id
)
begin select raise(abort, 'attached_workspaces_active_stays'); end;

create trigger workspace_occupancies_active_are_held
before update of released_at on workspace_occupancies
when new.released_at is not null and exists (
    select 1 from active_workspaces w
    where w.agent_id = old.holder_agent_id and w.occupancy_id = old.occupancy_id
)
begin select raise(abort, 'workspace_occupancies_active_are_held'); end;
