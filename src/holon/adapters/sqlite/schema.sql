-- version 19 --
-- What the migrations make of an empty database; `make docs` writes it. Why something
-- is as it is stands in the migration that made it.

CREATE TABLE agents (
    agent_id text not null primary key,
    identity text not null,
    archived integer not null,
    status text not null,
    status_since integer not null,
    status_reason text not null,
    sleeping_until integer,
    last_wake_reason text,
    generation integer not null default 0,
    passed_over integer not null default 0,
    current_work_item_id text references work_items (work_item_id),
    turn_index integer not null default 0,
    model_round_count integer not null default 0,
    input_tokens integer not null default 0,
    output_tokens integer not null default 0,
    model_override text,
    last_closure text,
    last_brief_at integer, is_public integer generated always as (
    archived = 0 and json_extract(identity, '$.visibility') = 'public'
) virtual, is_up integer generated always as (
    status <> 'asleep' and status <> 'paused' and status <> 'stopped'
) virtual, self_started_count integer not null default 0
constraint agents_self_started_is_natural check (self_started_count >= 0), self_started_at integer, gave_up integer not null default 0
constraint agents_gave_up_is_a_flag check (gave_up in (0, 1)), budget_until integer,
    constraint agents_status_is_known check (
        status = 'booting' or status = 'awake_idle' or status = 'awake_running'
        or status = 'awaiting_task' or status = 'asleep' or status = 'paused' or status = 'stopped'
    ),
    constraint agents_archived_is_a_flag check (archived in (0, 1)),
    constraint agents_counters_are_natural check (
        generation >= 0 and passed_over >= 0 and turn_index >= 0 and model_round_count >= 0
        and input_tokens >= 0 and output_tokens >= 0
    )
) strict;

CREATE TABLE messages (
    seq integer primary key autoincrement,
    message_id text not null,
    agent_id text not null references agents (agent_id),
    state text not null,
    band integer not null,
    kind text not null,
    origin_kind text not null,
    trust text not null,
    authority_class text not null,
    admission_context text not null,
    surface text not null,
    idempotency_key text,
    body_digest text,
    tick_key text,
    timer_id text,
    wait_id text,
    claimed_generation integer,
    unseen integer not null default 0,
    admitted_at integer not null,
    settled_at integer,
    settled_reason text,
    envelope text not null, not_before integer
constraint messages_only_queued_ones_wait check (not_before is null or state = 'queued'),
    constraint messages_state_is_known check (
        state = 'queued' or state = 'claimed' or state = 'processed' or state = 'interjected'
        or state = 'aborted' or state = 'dropped'
    ),
    constraint messages_band_is_known check (band between 0 and 3),
    constraint messages_kind_is_known check (
        kind = 'operator_prompt' or kind = 'webhook_event' or kind = 'callback_event'
        or kind = 'channel_event' or kind = 'timer_tick' or kind = 'system_tick'
        or kind = 'internal_followup' or kind = 'task_status' or kind = 'task_result'
        or kind = 'control' or kind = 'brief_ack' or kind = 'brief_result'
    ),
    constraint messages_origin_is_known check (
        origin_kind = 'operator' or origin_kind = 'channel' or origin_kind = 'webhook'
        or origin_kind = 'callback' or origin_kind = 'timer' or origin_kind = 'system'
        or origin_kind = 'task'
    ),
    constraint messages_trust_is_known check (
        trust = 'trusted_operator' or trust = 'trusted_system'
        or trust = 'trusted_integration' or trust = 'untrusted_external'
    ),
    constraint messages_authority_is_known check (
        authority_class = 'operator_instruction' or authority_class = 'runtime_instruction'
        or authority_class = 'integration_signal' or authority_class = 'external_evidence'
    ),
    constraint messages_admission_is_known check (
        admission_context = 'public_unauthenticated'
        or admission_context = 'control_authenticated'
        or admission_context = 'operator_transport_authenticated'
        or admission_context = 'external_trigger_capability'
        or admission_context = 'local_process' or admission_context = 'runtime_owned'
    ),
    -- Nobody is the operator without having proven it at the door.
    constraint messages_operator_is_proven check (
        origin_kind <> 'operator'
        or admission_context = 'control_authenticated'
        or admission_context = 'operator_transport_authenticated'
        or admission_context = 'local_process'
    ),
    -- Nobody but the operator speaks with the operator's authority.
    constraint messages_operator_authority_is_the_operators check (
        authority_class <> 'operator_instruction' or origin_kind = 'operator'
    ),
    -- Without the digest a repeat could not be told from a conflict.
    constraint messages_key_has_digest check (idempotency_key is null or body_digest is not null),
    constraint messages_claim_has_generation check (
        state <> 'claimed' or claimed_generation is not null
    ),
    constraint messages_end_has_moment_and_reason check (
        (state in ('queued', 'claimed')) = (settled_at is null)
        and (settled_at is null) = (settled_reason is null)
    ),
    constraint messages_unseen_is_a_processed_one check (
        unseen = 0 or (unseen = 1 and state = 'processed')
    )
) strict;

CREATE TABLE queues (
    agent_id text not null primary key,
    queued_count integer not null default 0,
    admitted_count integer not null default 0,
    constraint queues_count_is_natural check (queued_count >= 0 and admitted_count >= queued_count)
) strict, without rowid;

CREATE TABLE turns (
    turn_id text not null primary key,
    agent_id text not null references agents (agent_id),
    turn_index integer not null,
    message_id text not null references messages (message_id),
    work_item_id text,
    generation integer not null,
    resume_count integer not null default 0,
    opened_at integer not null,
    state text not null,
    settled_at integer,
    terminal text,
    round_count integer not null default 0,
    usage text, deferred integer not null default 0
constraint turns_deferred_names_the_turn check (deferred = 0 or deferred = turn_index), crash_count integer not null default 0
    constraint turns_crash_count_is_natural check (crash_count >= 0), crash_progress integer not null default 0
    constraint turns_crash_progress_is_natural check (crash_progress >= 0),
    constraint turns_state_is_known check (state in ('open', 'settled')),
    constraint turns_terminal_iff_settled check (
        (state = 'settled') = (terminal is not null)
        and (state = 'settled') = (settled_at is not null)
    ),
    constraint turns_counters_are_natural check (
        turn_index >= 1 and resume_count >= 0 and round_count >= 0 and generation >= 0
    )
) strict;

CREATE TABLE transcript (
    entry_seq integer primary key,
    turn_id text not null references turns (turn_id) on delete cascade,
    position integer not null,
    created_at integer not null,
    data text not null
) strict;

CREATE TABLE tool_calls (
    effect_id text not null primary key,
    call_id text not null,
    turn_id text not null references turns (turn_id) on delete cascade,
    round integer not null,
    position integer not null,
    name text not null,
    input text not null,
    state text not null,
    started_at integer not null,
    finished_at integer,
    duration_ms integer,
    work_item_id text,
    receipt text,
    constraint tool_calls_state_is_known check (
        state = 'started' or state = 'succeeded' or state = 'failed' or state = 'interrupted'
    ),
    constraint tool_calls_receipt_iff_finished check (
        (state = 'started') = (receipt is null) and (state = 'started') = (finished_at is null)
    )
) strict;

CREATE TABLE briefs (
    brief_seq integer primary key,
    brief_id text not null,
    agent_id text not null references agents (agent_id),
    turn_id text references turns (turn_id) on delete cascade,
    kind text not null,
    created_at integer not null,
    record text not null,
    constraint briefs_kind_is_known check (
        kind = 'ack' or kind = 'result' or kind = 'failure'
    )
) strict;

CREATE TABLE work_items (
    work_item_id text not null primary key,
    agent_id text not null references agents (agent_id),
    state text not null,
    revision integer not null,
    can_run integer not null,
    recheck_due_at integer,
    open_wait_count integer not null default 0,
    held_until integer,
    created_at integer not null,
    updated_at integer not null,
    record text not null, is_waiting integer generated always as (
    can_run = 0 or open_wait_count > 0
) virtual,
    constraint work_items_wait_count_is_natural check (open_wait_count >= 0),
    constraint work_items_state_is_known check (state in ('open', 'completed')),
    constraint work_items_only_open_ones_run check (
        can_run = 0 or (can_run = 1 and state = 'open')
    ),
    constraint work_items_only_open_ones_are_rechecked check (
        recheck_due_at is null or state = 'open'
    )
) strict;

CREATE TABLE delivery_summaries (
    summary_id text not null primary key,
    work_item_id text not null references work_items (work_item_id) on delete cascade,
    created_at integer not null,
    record text not null
) strict;

CREATE TABLE activations (
    agent_id text not null references agents (agent_id),
    work_item_id text not null references work_items (work_item_id) on delete cascade,
    revision_seen integer not null,
    no_progress_count integer not null,
    last_at integer not null,
    not_before integer not null,
    primary key (agent_id, work_item_id),
    constraint activations_count_is_natural check (no_progress_count >= 0)
) strict, without rowid;

CREATE TABLE tasks (
    task_id text not null primary key,
    agent_id text not null references agents (agent_id),
    kind text not null,
    status text not null,
    updated_at integer not null,
    result_summary text,
    exit_status integer,
    failure text,
    record text not null,
    constraint tasks_status_is_known check (
        status = 'queued' or status = 'running' or status = 'cancelling'
        or status = 'completed' or status = 'failed' or status = 'cancelled'
        or status = 'interrupted'
    )
) strict;

CREATE TABLE timers (
    timer_id text not null primary key,
    agent_id text not null references agents (agent_id),
    status text not null,
    next_fire_at integer,
    last_fired_at integer,
    fire_count integer not null,
    ended_at integer,
    record text not null,
    constraint timers_status_is_known check (
        status = 'active' or status = 'completed' or status = 'cancelled'
    ),
    constraint timers_active_iff_next_slot check (
        (status = 'active') = (next_fire_at is not null)
    ),
    constraint timers_end_has_moment check ((status = 'active') = (ended_at is null))
) strict;

CREATE TABLE wake_hints (
    agent_id text not null references agents (agent_id),
    source_key text not null,
    revision integer not null,
    created_at integer not null,
    record text not null,
    primary key (agent_id, source_key),
    constraint wake_hints_revision_is_positive check (revision >= 1)
) strict;

CREATE TABLE waits (
    wait_id text not null primary key,
    agent_id text not null references agents (agent_id),
    kind text not null,
    state text not null,
    work_item_id text references work_items (work_item_id) on delete cascade,
    source_id text,
    deadline_at integer,
    triggered_by text,
    ended_at integer,
    record text not null,
    constraint waits_kind_is_known check (
        kind = 'task' or kind = 'external' or kind = 'operator' or kind = 'timer'
        or kind = 'system' or kind = 'recheck' or kind = 'rest'
    ),
    constraint waits_state_is_known check (
        state = 'active' or state = 'triggered' or state = 'resolved' or state = 'cancelled'
        or state = 'expired'
    ),
    constraint waits_end_has_moment check (
        (state in ('active', 'triggered')) = (ended_at is null)
    ),
    -- A wait that nothing can end is a stuck agent.
    constraint waits_can_end check (
        kind = 'operator' or source_id is not null or deadline_at is not null
    )
) strict;

CREATE TABLE event_heads (
    agent_id text not null primary key references agents (agent_id),
    last_seq integer not null,
    floor_seq integer not null default 0,
    constraint event_heads_floor_is_below check (floor_seq between 0 and last_seq)
) strict, without rowid;

CREATE TABLE events (
    log_seq integer primary key,
    agent_id text not null,
    event_seq integer not null,
    created_at integer not null,
    event text not null
, turn_id text) strict;

CREATE TABLE commits (
    applied_seq integer primary key,
    commit_id text not null,
    applied_at integer not null
) strict;

CREATE TABLE tool_latency (
    agent_id text not null references agents (agent_id),
    tool_name text not null,
    call_count integer not null,
    total_ms integer not null,
    max_ms integer not null,
    last_ms integer not null,
    primary key (agent_id, tool_name),
    constraint tool_latency_sums_are_natural check (
        call_count >= 1 and last_ms >= 0 and max_ms >= last_ms and total_ms >= max_ms
    )
) strict, without rowid;

CREATE TABLE external_triggers (
    external_trigger_id text not null primary key,
    agent_id text not null references agents (agent_id),
    delivery_mode text not null,
    status text not null,
    epoch integer not null,
    created_at integer not null,
    revoked_at integer,
    last_delivered_at integer,
    delivery_count integer not null default 0,
    constraint external_triggers_mode_is_known check (
        delivery_mode = 'wake_hint' or delivery_mode = 'enqueue_message'
    ),
    constraint external_triggers_status_is_known check (status = 'active' or status = 'revoked'),
    constraint external_triggers_revoked_has_moment check (
        (status = 'revoked') = (revoked_at is not null)
    ),
    constraint external_triggers_counters_are_natural check (epoch >= 1 and delivery_count >= 0)
) strict, without rowid;

CREATE TABLE trigger_deliveries (
    external_trigger_id text not null references external_triggers (external_trigger_id),
    delivery_key text not null,
    delivered_at integer not null,
    disposition text not null, content_digest text
    constraint trigger_deliveries_content_is_a_digest check (length(content_digest) = 64),
    primary key (external_trigger_id, delivery_key),
    constraint trigger_deliveries_key_is_a_digest check (length(delivery_key) = 64),
    constraint trigger_deliveries_disposition_is_known check (
        disposition = 'triggered' or disposition = 'coalesced' or disposition = 'parked'
    )
) strict, without rowid;

CREATE TABLE usage (
    scope text not null,
    step integer not null,
    turn_count integer not null,
    tokens integer not null,
    cost_micros integer not null,
    primary key (scope, step),
    constraint usage_is_natural check (turn_count >= 0 and tokens >= 0 and cost_micros >= 0)
) strict, without rowid;

CREATE TABLE workspaces (
    workspace_id text not null primary key,
    workspace_anchor text not null,
    repo_name text,
    created_at integer not null,
    updated_at integer not null,
    constraint workspaces_anchor_is_absolute check (substr(workspace_anchor, 1, 1) = '/')
) strict, without rowid;

CREATE TABLE attached_workspaces (
    agent_id text not null references agents (agent_id),
    workspace_id text not null references workspaces (workspace_id),
    attached_at integer not null,
    primary key (agent_id, workspace_id)
) strict, without rowid;

CREATE TABLE workspace_occupancies (
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

CREATE TABLE active_workspaces (
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

CREATE TABLE memory_sources (
    change_seq integer primary key autoincrement,
    agent_id text not null references agents (agent_id),
    kind text not null,
    source_id text not null,
    evidence_rank integer not null,
    gone integer not null default 0,
    changed_at integer not null,
    constraint memory_sources_kind_is_known check (
        kind = 'workspace_profile' or kind = 'brief' or kind = 'episode' or kind = 'work_item'
        or kind = 'task' or kind = 'tool_execution'
    ),
    constraint memory_sources_rank_is_known check (evidence_rank between 0 and 3),
    constraint memory_sources_gone_is_a_flag check (gone in (0, 1))
) strict;

CREATE TABLE memory_floors (
    agent_id text not null primary key references agents (agent_id),
    floor_seq integer not null
) strict, without rowid;

CREATE TABLE turn_evidence (
    turn_id text not null primary key references turns (turn_id) on delete cascade,
    evidence_rank integer not null,
    constraint turn_evidence_rank_is_known check (evidence_rank between 0 and 3)
) strict, without rowid;

CREATE TABLE skill_activations (
    agent_id text not null references agents (agent_id),
    entrypoint_path text not null,
    load_reason text not null,
    skill_name text not null,
    path text not null,
    source text not null,
    state text not null,
    is_lasting integer not null,  -- session_active before the turn that uses it now
    turn_id text not null,
    turn_index integer not null,
    activated_at integer not null,
    primary key (agent_id, entrypoint_path, load_reason),
    constraint skill_activations_state_is_known check (
        state = 'turn_active' or state = 'session_active'
    ),
    constraint skill_activations_reason_is_known check (
        load_reason = 'read_skill_md' or load_reason = 'run_skill_script'
    ),
    constraint skill_activations_source_is_known check (
        source = 'explicit' or source = 'implicit_from_catalog' or source = 'restored'
        or source = 'inherited'
    ),
    constraint skill_activations_session_lasts check (
        is_lasting = 1 or (is_lasting = 0 and state = 'turn_active')
    )
) strict, without rowid;

CREATE TABLE agent_contexts (
    agent_id text not null primary key references agents (agent_id),
    history_from_turn integer not null,
    compression_epoch integer not null,
    recap text not null,
    constraint agent_contexts_first_turn_is_one check (history_from_turn >= 1),
    constraint agent_contexts_epoch_is_positive check (compression_epoch >= 1),
    constraint agent_contexts_recap_is_a_list check (json_type(recap) = 'array')
) strict;

CREATE TABLE working_memories (
    agent_id text not null primary key references agents (agent_id),
    revision integer not null,
    last_prompted_revision integer not null,
    active_episode_id text,
    archived_episode_count integer not null,
    state text not null,
    constraint working_memories_prompted_is_known check (
        last_prompted_revision between 0 and revision
    ),
    constraint working_memories_archived_is_natural check (archived_episode_count >= 0)
) strict, without rowid;

CREATE TABLE episodes (
    episode_seq integer primary key,
    episode_id text not null,
    agent_id text not null references agents (agent_id),
    end_turn_index integer not null,
    finalized_at integer not null,
    record text not null
) strict;

CREATE TABLE tainted_instructions (
    agent_id text not null primary key references agents (agent_id),
    path text not null,
    turn_id text not null,
    changed_at integer not null,
    change_count integer not null,
    constraint tainted_instructions_count_is_positive check (change_count >= 1)
) strict, without rowid;

CREATE TABLE home_owner (
    only_row integer primary key constraint home_owner_is_one check (only_row = 1),
    generation integer not null constraint home_owner_generation_positive check (generation > 0),
    -- The home: a random id, and the device and inode of the folder that has it. A copy is another one.
    home_id text not null,
    path text not null,
    device text not null,
    inode text not null,
    -- The lock file its owner holds, and the process that does.
    lock_device text not null,
    lock_inode text not null,
    pid integer not null,
    start_ticks integer not null,
    process_space text not null,
    -- Is the owner alive? Who cannot see its process asks here, and the owner repeats the number.
    question integer not null default 0,
    answer integer not null default 0
) strict;

CREATE TABLE log_epoch (
    id integer not null primary key,
    epoch text not null,
    constraint log_epoch_is_one_row check (id = 1),
    constraint log_epoch_is_an_id check (length(epoch) between 8 and 64)
) strict;

CREATE INDEX agents_by_focus on agents (current_work_item_id)
where current_work_item_id is not null;

CREATE UNIQUE INDEX messages_id on messages (message_id);

CREATE UNIQUE INDEX messages_one_claim_per_agent on messages (agent_id) where state = 'claimed';

CREATE UNIQUE INDEX messages_idempotency_key on messages (agent_id, surface, idempotency_key)
where idempotency_key is not null;

CREATE UNIQUE INDEX messages_one_pending_tick on messages (agent_id, tick_key)
where tick_key is not null and state in ('queued', 'claimed');

CREATE INDEX messages_unseen on messages (agent_id, seq) where unseen = 1;

CREATE INDEX messages_pending_timer_tick on messages (timer_id)
where timer_id is not null and state in ('queued', 'claimed');

CREATE INDEX messages_ended on messages (settled_at) where settled_at is not null;

CREATE UNIQUE INDEX turns_one_open_per_agent on turns (agent_id) where state = 'open';

CREATE UNIQUE INDEX turns_index on turns (agent_id, turn_index);

CREATE INDEX turns_settled on turns (settled_at) where state = 'settled';

CREATE UNIQUE INDEX transcript_position on transcript (turn_id, position);

CREATE UNIQUE INDEX tool_calls_position on tool_calls (turn_id, round, position);

CREATE UNIQUE INDEX briefs_id on briefs (brief_id);

CREATE INDEX briefs_by_agent on briefs (agent_id, brief_seq);

CREATE INDEX briefs_by_turn on briefs (turn_id) where turn_id is not null;

CREATE INDEX briefs_without_turn on briefs (created_at) where turn_id is null;

CREATE INDEX work_items_open on work_items (agent_id, created_at, work_item_id)
where state = 'open';

CREATE INDEX work_items_runnable on work_items (agent_id)
where can_run = 1 and open_wait_count = 0;

CREATE INDEX work_items_held on work_items (held_until)
where can_run = 1 and open_wait_count = 0 and held_until is not null;

CREATE INDEX work_items_recheck on work_items (recheck_due_at) where recheck_due_at is not null;

CREATE INDEX work_items_recheck_by_agent on work_items (agent_id, recheck_due_at)
where recheck_due_at is not null;

CREATE INDEX work_items_completed on work_items (updated_at) where state = 'completed';

CREATE INDEX delivery_summaries_by_item on delivery_summaries (work_item_id);

CREATE INDEX activations_by_item on activations (work_item_id);

CREATE INDEX activations_by_moment on activations (last_at);

CREATE INDEX tasks_open on tasks (task_id) where status in ('queued', 'running', 'cancelling');

CREATE INDEX tasks_ended on tasks (updated_at)
where status in ('completed', 'failed', 'cancelled', 'interrupted');

CREATE INDEX timers_due on timers (next_fire_at) where status = 'active';

CREATE INDEX timers_active_by_agent on timers (agent_id) where status = 'active';

CREATE INDEX timers_ended on timers (ended_at) where ended_at is not null;

CREATE INDEX waits_open_by_agent on waits (agent_id) where state in ('active', 'triggered');

CREATE INDEX waits_open_by_source on waits (source_id)
where source_id is not null and state in ('active', 'triggered');

CREATE INDEX waits_due on waits (deadline_at) where deadline_at is not null and state = 'active';

CREATE INDEX waits_ended on waits (ended_at) where ended_at is not null;

CREATE INDEX waits_by_item on waits (work_item_id) where work_item_id is not null;

CREATE UNIQUE INDEX waits_one_rest_per_agent on waits (agent_id)
where kind = 'rest' and state = 'active';

CREATE UNIQUE INDEX waits_one_recheck_per_item on waits (work_item_id)
where kind = 'recheck' and state = 'active';

CREATE UNIQUE INDEX events_sequence on events (agent_id, event_seq);

CREATE UNIQUE INDEX commits_id on commits (commit_id);

CREATE INDEX messages_queue on messages (agent_id, band, seq)
where state = 'queued' and not_before is null;

CREATE INDEX messages_deferred_of_agent on messages (agent_id, not_before)
where state = 'queued' and not_before is not null;

CREATE INDEX messages_deferred on messages (not_before)
where state = 'queued' and not_before is not null;

CREATE UNIQUE INDEX turns_one_per_message on turns (message_id, deferred);

CREATE INDEX work_items_completed_by_agent on work_items (agent_id, updated_at, work_item_id)
where state = 'completed';

CREATE INDEX tasks_ended_by_agent on tasks (agent_id, updated_at, task_id)
where status in ('completed', 'failed', 'cancelled', 'interrupted');

CREATE INDEX messages_followups on messages (json_extract(envelope, '$.followup.root_id'))
where kind = 'internal_followup';

CREATE INDEX messages_unread_results on messages (agent_id)
where kind = 'task_result' and state in ('queued', 'claimed');

CREATE INDEX agents_public on agents (agent_id) where is_public = 1;

CREATE INDEX agents_up on agents (status, agent_id) where is_public = 1 and is_up = 1;

CREATE INDEX work_items_ranked on work_items (agent_id, is_waiting, created_at, work_item_id)
where state = 'open';

CREATE INDEX tasks_open_by_agent on tasks (agent_id, updated_at, task_id)
where status in ('queued', 'running', 'cancelling');

CREATE INDEX timers_slots_by_agent on timers (agent_id, next_fire_at, timer_id)
where status = 'active';

CREATE INDEX timers_ended_by_agent on timers (agent_id, ended_at, timer_id)
where ended_at is not null;

CREATE INDEX waits_visible on waits (agent_id)
where state in ('active', 'triggered') and kind <> 'rest' and kind <> 'recheck';

CREATE INDEX briefs_failed on briefs (brief_seq) where kind = 'failure';

CREATE INDEX briefs_failed_by_agent on briefs (agent_id, brief_seq) where kind = 'failure';

CREATE UNIQUE INDEX external_triggers_one_per_agent on external_triggers (agent_id);

CREATE INDEX trigger_deliveries_by_age on trigger_deliveries (delivered_at);

CREATE INDEX agents_over_budget on agents (budget_until) where budget_until is not null;

CREATE INDEX usage_by_age on usage (step);

CREATE UNIQUE INDEX workspaces_one_per_anchor on workspaces (workspace_anchor);

CREATE UNIQUE INDEX workspace_occupancies_one_per_holder
on workspace_occupancies (holder_agent_id) where released_at is null;

CREATE INDEX workspace_occupancies_open
on workspace_occupancies (execution_root_id) where released_at is null;

CREATE INDEX workspace_occupancies_left
on workspace_occupancies (holder_agent_id, execution_root_id) where released_at is not null;

CREATE UNIQUE INDEX active_workspaces_one_per_occupancy on active_workspaces (occupancy_id);

CREATE UNIQUE INDEX memory_sources_one_per_record on memory_sources (agent_id, kind, source_id);

CREATE INDEX memory_sources_by_agent on memory_sources (agent_id, change_seq);

CREATE INDEX memory_sources_gone on memory_sources (changed_at) where gone = 1;

CREATE INDEX skill_activations_of_turns on skill_activations (agent_id)
where state = 'turn_active';

CREATE INDEX skill_activations_to_restore on skill_activations (source)
where state = 'session_active' and source <> 'restored';

CREATE UNIQUE INDEX episodes_one_per_id on episodes (episode_id);

CREATE INDEX episodes_by_agent on episodes (agent_id, end_turn_index, episode_seq);

CREATE INDEX episodes_by_age on episodes (finalized_at);

CREATE INDEX agents_in_use on agents (agent_id) where archived = 0;

CREATE INDEX work_items_needing_input on work_items (agent_id)
where state = 'open' and json_extract(record, '$.plan_status') = 'needs_input';

CREATE TRIGGER agents_generation_never_falls
before update of generation on agents when new.generation < old.generation
begin select raise(abort, 'agents_generation_never_falls'); end;

CREATE TRIGGER agents_turn_index_never_falls
before update of turn_index on agents when new.turn_index < old.turn_index
begin select raise(abort, 'agents_turn_index_never_falls'); end;

CREATE TRIGGER agents_identity_is_written_once
before update of agent_id, identity on agents
begin select raise(abort, 'agents_identity_is_written_once'); end;

CREATE TRIGGER messages_end_once
before update of state on messages when old.state not in ('queued', 'claimed')
begin select raise(abort, 'messages_end_once'); end;

CREATE TRIGGER messages_unfinished_are_kept
before delete on messages when old.state in ('queued', 'claimed')
begin select raise(abort, 'messages_unfinished_are_kept'); end;

CREATE TRIGGER messages_provenance_is_fixed
before update of message_id, agent_id, band, kind, origin_kind, trust, authority_class,
    admission_context, surface, idempotency_key, body_digest, tick_key, admitted_at, envelope
on messages
begin select raise(abort, 'messages_provenance_is_fixed'); end;

CREATE TRIGGER queues_begin_with_their_agent
after insert on agents
begin
    insert into queues (agent_id) values (new.agent_id);
end;

CREATE TRIGGER queues_count_admitted
after insert on messages
begin
    update queues set
        queued_count = queued_count + (new.state = 'queued'), admitted_count = admitted_count + 1
    where agent_id = new.agent_id;
end;

CREATE TRIGGER queues_count_left
after update of state on messages when old.state = 'queued' and new.state <> 'queued'
begin
    update queues set queued_count = queued_count - 1 where agent_id = new.agent_id;
end;

CREATE TRIGGER turns_settle_once
before update of state, terminal on turns when old.state = 'settled'
begin select raise(abort, 'turns_settle_once'); end;

CREATE TRIGGER turns_open_are_kept
before delete on turns when old.state = 'open'
begin select raise(abort, 'turns_open_are_kept'); end;

CREATE TRIGGER transcript_positions_are_gapless
before insert on transcript
when new.position <> (
    select coalesce(max(position) + 1, 0) from transcript where turn_id = new.turn_id
)
begin select raise(abort, 'transcript_positions_are_gapless'); end;

CREATE TRIGGER transcript_is_append_only
before update on transcript
begin select raise(abort, 'transcript_is_append_only'); end;

CREATE TRIGGER transcript_ends_with_its_turn
before insert on transcript
when (select state from turns where turn_id = new.turn_id) = 'settled'
begin select raise(abort, 'transcript_ends_with_its_turn'); end;

CREATE TRIGGER tool_calls_finish_once
before update of state, receipt on tool_calls when old.state <> 'started'
begin select raise(abort, 'tool_calls_finish_once'); end;

CREATE TRIGGER work_items_start_at_revision_one
before insert on work_items when new.revision <> 1
begin select raise(abort, 'work_items_start_at_revision_one'); end;

CREATE TRIGGER work_items_revision_follows
before update of revision, record on work_items when new.revision <> old.revision + 1
begin select raise(abort, 'work_items_revision_follows'); end;

CREATE TRIGGER work_items_stay_with_their_agent
before update of agent_id on work_items when new.agent_id <> old.agent_id
begin select raise(abort, 'work_items_stay_with_their_agent'); end;

CREATE TRIGGER work_items_complete_once
before update of state on work_items when old.state = 'completed' and new.state <> 'completed'
begin select raise(abort, 'work_items_complete_once'); end;

CREATE TRIGGER work_items_held_by_offer
after insert on activations
begin
    update work_items set held_until = new.not_before
    where work_item_id = new.work_item_id and revision <= new.revision_seen;
end;

CREATE TRIGGER work_items_held_by_repeated_offer
after update on activations
begin
    update work_items set held_until = new.not_before
    where work_item_id = new.work_item_id and revision <= new.revision_seen;
end;

CREATE TRIGGER work_items_open_are_kept
before delete on work_items when old.state = 'open'
begin select raise(abort, 'work_items_open_are_kept'); end;

CREATE TRIGGER tasks_end_once
before update of status on tasks
when old.status in ('completed', 'failed', 'cancelled', 'interrupted')
begin select raise(abort, 'tasks_end_once'); end;

CREATE TRIGGER tasks_only_move_forward
before update of status on tasks
when (new.status = 'queued' and old.status in ('running', 'cancelling'))
    or (new.status = 'running' and old.status = 'cancelling')
begin select raise(abort, 'tasks_only_move_forward'); end;

CREATE TRIGGER tasks_open_are_kept
before delete on tasks when old.status in ('queued', 'running', 'cancelling')
begin select raise(abort, 'tasks_open_are_kept'); end;

CREATE TRIGGER timers_end_once
before update of status, next_fire_at on timers when old.status <> 'active'
begin select raise(abort, 'timers_end_once'); end;

CREATE TRIGGER timers_active_are_kept
before delete on timers when old.status = 'active'
begin select raise(abort, 'timers_active_are_kept'); end;

CREATE TRIGGER wake_hints_revision_rises
before update on wake_hints when new.revision <= old.revision
begin select raise(abort, 'wake_hints_revision_rises'); end;

CREATE TRIGGER work_items_count_opened_wait
after insert on waits
when new.work_item_id is not null and new.kind <> 'rest' and new.state in ('active', 'triggered')
begin
    update work_items set open_wait_count = open_wait_count + 1
    where work_item_id = new.work_item_id;
end;

CREATE TRIGGER work_items_count_ended_wait
after update of state on waits
when new.work_item_id is not null and new.kind <> 'rest'
    and old.state in ('active', 'triggered') and new.state not in ('active', 'triggered')
begin
    update work_items set open_wait_count = open_wait_count - 1
    where work_item_id = new.work_item_id;
end;

CREATE TRIGGER waits_open_are_kept
before delete on waits when old.state in ('active', 'triggered')
begin select raise(abort, 'waits_open_are_kept'); end;

CREATE TRIGGER waits_end_once
before update of state on waits when old.state not in ('active', 'triggered')
begin select raise(abort, 'waits_end_once'); end;

CREATE TRIGGER waits_triggered_is_not_taken_back
before update of state on waits when old.state = 'triggered' and new.state <> 'resolved'
begin select raise(abort, 'waits_triggered_is_not_taken_back'); end;

CREATE TRIGGER event_heads_only_rise
before update on event_heads
when new.last_seq < old.last_seq or new.floor_seq < old.floor_seq
begin select raise(abort, 'event_heads_only_rise'); end;

CREATE TRIGGER events_are_gapless
before insert on events
when new.event_seq <> 1 and not exists (
    select 1 from events where agent_id = new.agent_id and event_seq = new.event_seq - 1
)
begin select raise(abort, 'events_are_gapless'); end;

CREATE TRIGGER events_are_append_only
before update on events
begin select raise(abort, 'events_are_append_only'); end;

CREATE TRIGGER events_leave_from_the_old_end
before delete on events
when old.event_seq > (select floor_seq from event_heads where agent_id = old.agent_id)
begin select raise(abort, 'events_leave_from_the_old_end'); end;

CREATE TRIGGER messages_claim_is_not_handed_back
before update of state on messages
when old.state = 'claimed' and new.state = 'queued' and new.not_before is null
begin select raise(abort, 'messages_claim_is_not_handed_back'); end;

CREATE TRIGGER queues_count_handed_back
after update of state on messages when old.state = 'claimed' and new.state = 'queued'
begin
    update queues set queued_count = queued_count + 1 where agent_id = new.agent_id;
end;

CREATE TRIGGER external_triggers_epoch_never_falls
before update of epoch on external_triggers when new.epoch < old.epoch
begin select raise(abort, 'external_triggers_epoch_never_falls'); end;

CREATE TRIGGER external_triggers_return_with_a_new_epoch
before update of status on external_triggers
when old.status = 'revoked' and new.status = 'active' and new.epoch = old.epoch
begin select raise(abort, 'external_triggers_return_with_a_new_epoch'); end;

CREATE TRIGGER external_triggers_revoked_take_nothing
before update of delivery_count on external_triggers when old.status <> 'active'
begin select raise(abort, 'external_triggers_revoked_take_nothing'); end;

CREATE TRIGGER external_triggers_stay_with_their_agent
before update of external_trigger_id, agent_id, created_at on external_triggers
begin select raise(abort, 'external_triggers_stay_with_their_agent'); end;

CREATE TRIGGER external_triggers_are_kept
before delete on external_triggers
begin select raise(abort, 'external_triggers_are_kept'); end;

CREATE TRIGGER workspaces_stay_what_they_are
before update of workspace_id, workspace_anchor, created_at on workspaces
when new.workspace_id <> old.workspace_id or new.workspace_anchor <> old.workspace_anchor
    or new.created_at <> old.created_at
begin select raise(abort, 'workspaces_stay_what_they_are'); end;

CREATE TRIGGER workspaces_are_kept
before delete on workspaces
begin select raise(abort, 'workspaces_are_kept'); end;

CREATE TRIGGER workspace_occupancies_exclude_each_other
before insert on workspace_occupancies
when exists (
    select 1 from workspace_occupancies o
    where o.execution_root_id = new.execution_root_id and o.released_at is null
        and (o.access_mode = 'exclusive_write' or new.access_mode = 'exclusive_write')
)
begin select raise(abort, 'workspace_occupancies_exclude_each_other'); end;

CREATE TRIGGER workspace_occupancies_end_once
before update on workspace_occupancies when old.released_at is not null
begin select raise(abort, 'workspace_occupancies_end_once'); end;

CREATE TRIGGER workspace_occupancies_open_are_kept
before delete on workspace_occupancies when old.released_at is null
begin select raise(abort, 'workspace_occupancies_open_are_kept'); end;

CREATE TRIGGER attached_workspaces_active_stays
before delete on attached_workspaces
when exists (
    select 1 from active_workspaces w
    where w.agent_id = old.agent_id and w.workspace_id = old.workspace_id
)
begin select raise(abort, 'attached_workspaces_active_stays'); end;

CREATE TRIGGER workspace_occupancies_active_are_held
before update of released_at on workspace_occupancies
when new.released_at is not null and exists (
    select 1 from active_workspaces w
    where w.agent_id = old.holder_agent_id and w.occupancy_id = old.occupancy_id
)
begin select raise(abort, 'workspace_occupancies_active_are_held'); end;

CREATE TRIGGER agent_contexts_only_move_on
before update on agent_contexts
when new.history_from_turn < old.history_from_turn
    or new.compression_epoch <> old.compression_epoch + 1
    or new.agent_id <> old.agent_id
begin select raise(abort, 'agent_contexts_only_move_on'); end;

CREATE TRIGGER agent_contexts_are_kept
before delete on agent_contexts
begin select raise(abort, 'agent_contexts_are_kept'); end;

CREATE TRIGGER working_memories_go_forward
before update on working_memories
when new.revision < old.revision or new.revision > old.revision + 1
    or new.last_prompted_revision < old.last_prompted_revision
    or new.archived_episode_count < old.archived_episode_count
begin select raise(abort, 'working_memories_go_forward'); end;

CREATE TRIGGER episodes_never_change
before update on episodes
begin select raise(abort, 'episodes_never_change'); end;

CREATE TRIGGER tainted_instructions_count_on
before update on tainted_instructions
when new.change_count <> old.change_count + 1
begin select raise(abort, 'tainted_instructions_count_on'); end;

CREATE TRIGGER tainted_instructions_are_kept
before delete on tainted_instructions
begin select raise(abort, 'tainted_instructions_are_kept'); end;

CREATE TRIGGER agents_archived_owe_nothing
before update of archived on agents
when new.archived = 1 and (
    exists (select 1 from messages where agent_id = new.agent_id and state = 'queued')
    or exists (select 1 from messages where agent_id = new.agent_id and state = 'claimed')
    or exists (select 1 from turns where agent_id = new.agent_id and state = 'open')
    or exists (
        select 1 from tasks
        where agent_id = new.agent_id and status in ('queued', 'running', 'cancelling')
    )
    or exists (select 1 from work_items where agent_id = new.agent_id and state = 'open')
    or exists (select 1 from timers where agent_id = new.agent_id and status = 'active')
    or exists (
        select 1 from waits where agent_id = new.agent_id and state in ('active', 'triggered')
    )
    or exists (select 1 from wake_hints where agent_id = new.agent_id)
    or exists (
        select 1 from external_triggers where agent_id = new.agent_id and status = 'active'
    )
)
begin select raise(abort, 'agents_archived_owe_nothing'); end;

CREATE TRIGGER agents_archived_stay_so
before update of archived on agents when old.archived = 1 and new.archived = 0
begin select raise(abort, 'agents_archived_stay_so'); end;

CREATE TRIGGER home_owner_generation_goes_up
before update of generation on home_owner when new.generation <= old.generation
begin select raise(abort, 'home_owner_generation_goes_up'); end;
