-- update_work_item --
update work_items set
    agent_id = ?2, state = ?3, revision = ?4, can_run = ?5, recheck_due_at = ?6, created_at = ?7,
    updated_at = ?8, record = ?9, held_until = null
where work_item_id = ?1;

-- insert_work_item --
insert into work_items (
    work_item_id, agent_id, state, revision, can_run, recheck_due_at, created_at, updated_at, record
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- append_delivery_summary --
insert into delivery_summaries (summary_id, work_item_id, created_at, record)
values (?1, ?2, ?3, ?4);

-- remember_activation --
insert into activations (
    agent_id, work_item_id, revision_seen, no_progress_count, last_at, not_before
) values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (agent_id, work_item_id) do update set
    revision_seen = excluded.revision_seen,
    no_progress_count = excluded.no_progress_count,
    last_at = excluded.last_at,
    not_before = excluded.not_before;

-- create_task --
insert into tasks (
    task_id, agent_id, kind, status, updated_at, result_summary, exit_status, failure, record
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- advance_task --
update tasks set
    status = ?3,
    updated_at = ?4,
    result_summary = coalesce(?5, result_summary),
    exit_status = coalesce(?6, exit_status),
    failure = coalesce(?7, failure)
where task_id = ?1 and agent_id = ?2;
