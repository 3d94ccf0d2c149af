-- The schema of a Holon home. A row that is in a table is legal: what the runtime promises is a
-- constraint, an index or a trigger here, so code above may be wrong without doing harm.
--
-- Conventions: moments are whole microseconds since the epoch; records that never change are JSON
-- text, and what moves about them is a column beside it; every constraint has a name, because the
-- name is what a refused commit is told. Checks spell out `a = 'x' or a = 'y'`, since SQLite builds
-- a small table for a longer `in` list each time it evaluates one.

-- Agents --------------------------------------------------------------------------------------

create table agents (
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
    last_brief_at integer,
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

-- Deleting a finished work item must find out cheaply whether an agent still points at it.
create index agents_by_focus on agents (current_work_item_id)
where current_work_item_id is not null;

-- The fence only ever rises: a lane that held an older number can never become current again.
create trigger agents_generation_never_falls
before update of generation on agents when new.generation < old.generation
begin select raise(abort, 'agents_generation_never_falls'); end;

create trigger agents_turn_index_never_falls
before update of turn_index on agents when new.turn_index < old.turn_index
begin select raise(abort, 'agents_turn_index_never_falls'); end;

create trigger agents_identity_is_written_once
before update of agent_id, identity on agents
begin select raise(abort, 'agents_identity_is_written_once'); end;

-- Messages and their queue --------------------------------------------------------------------

-- `seq` is the order of admission and is never given out twice, also after pruning.
create table messages (
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
    envelope text not null,
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

create unique index messages_id on messages (message_id);

-- An agent works on at most one message at a time.
create unique index messages_one_claim_per_agent on messages (agent_id) where state = 'claimed';

-- The same key on the same surface is the same message, for as long as the row is kept.
create unique index messages_idempotency_key on messages (agent_id, surface, idempotency_key)
where idempotency_key is not null;

-- A reason to tick that is still in the queue is not queued again.
create unique index messages_one_pending_tick on messages (agent_id, tick_key)
where tick_key is not null and state in ('queued', 'claimed');

-- The queue: strict bands, oldest first within a band.
create index messages_queue on messages (agent_id, band, seq) where state = 'queued';

create index messages_unseen on messages (agent_id, seq) where unseen = 1;

create index messages_pending_timer_tick on messages (timer_id)
where timer_id is not null and state in ('queued', 'claimed');

-- Retention takes ended messages from the old end.
create index messages_ended on messages (settled_at) where settled_at is not null;

-- A message ends once, in one terminal state, and a claim is never handed back.
create trigger messages_end_once
before update of state on messages when old.state not in ('queued', 'claimed')
begin select raise(abort, 'messages_end_once'); end;

create trigger messages_claim_is_not_handed_back
before update of state on messages when old.state = 'claimed' and new.state = 'queued'
begin select raise(abort, 'messages_claim_is_not_handed_back'); end;

create trigger messages_unfinished_are_kept
before delete on messages when old.state in ('queued', 'claimed')
begin select raise(abort, 'messages_unfinished_are_kept'); end;

-- What was admitted, and how, is never rewritten.
create trigger messages_provenance_is_fixed
before update of message_id, agent_id, band, kind, origin_kind, trust, authority_class,
    admission_context, surface, idempotency_key, body_digest, tick_key, admitted_at, envelope
on messages
begin select raise(abort, 'messages_provenance_is_fixed'); end;

-- How long each queue is, kept by triggers so that it cannot drift. It stands apart from `agents`
-- so that admitting a message does not rewrite an agent's row.
create table queues (
    agent_id text not null primary key,
    queued_count integer not null default 0,
    admitted_count integer not null default 0,
    constraint queues_count_is_natural check (queued_count >= 0 and admitted_count >= queued_count)
) strict, without rowid;

create trigger queues_begin_with_their_agent
after insert on agents
begin
    insert into queues (agent_id) values (new.agent_id);
end;

create trigger queues_count_admitted
after insert on messages
begin
    update queues set
        queued_count = queued_count + (new.state = 'queued'), admitted_count = admitted_count + 1
    where agent_id = new.agent_id;
end;

create trigger queues_count_left
after update of state on messages when old.state = 'queued' and new.state <> 'queued'
begin
    update queues set queued_count = queued_count - 1 where agent_id = new.agent_id;
end;

-- Turns and what happened in them -------------------------------------------------------------

create table turns (
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
    usage text,
    constraint turns_state_is_known check (state in ('open', 'settled')),
    constraint turns_terminal_iff_settled check (
        (state = 'settled') = (terminal is not null)
        and (state = 'settled') = (settled_at is not null)
    ),
    constraint turns_counters_are_natural check (
        turn_index >= 1 and resume_count >= 0 and round_count >= 0 and generation >= 0
    )
) strict;

-- One lane per agent: an agent has at most one open turn.
create unique index turns_one_open_per_agent on turns (agent_id) where state = 'open';

-- A message leads to at most one turn.
create unique index turns_one_per_message on turns (message_id);

create unique index turns_index on turns (agent_id, turn_index);

create index turns_settled on turns (settled_at) where state = 'settled';

create trigger turns_settle_once
before update of state, terminal on turns when old.state = 'settled'
begin select raise(abort, 'turns_settle_once'); end;

create trigger turns_open_are_kept
before delete on turns when old.state = 'open'
begin select raise(abort, 'turns_open_are_kept'); end;

create table transcript (
    entry_seq integer primary key,
    turn_id text not null references turns (turn_id) on delete cascade,
    position integer not null,
    created_at integer not null,
    data text not null
) strict;

create unique index transcript_position on transcript (turn_id, position);

-- Folding the entries rebuilds the turn, so none may be missing and none may come in between.
create trigger transcript_positions_are_gapless
before insert on transcript
when new.position <> (
    select coalesce(max(position) + 1, 0) from transcript where turn_id = new.turn_id
)
begin select raise(abort, 'transcript_positions_are_gapless'); end;

create trigger transcript_is_append_only
before update on transcript
begin select raise(abort, 'transcript_is_append_only'); end;

create trigger transcript_ends_with_its_turn
before insert on transcript
when (select state from turns where turn_id = new.turn_id) = 'settled'
begin select raise(abort, 'transcript_ends_with_its_turn'); end;

create table tool_calls (
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

create unique index tool_calls_position on tool_calls (turn_id, round, position);

-- A call has one result; a second one would rewrite what the model has read.
create trigger tool_calls_finish_once
before update of state, receipt on tool_calls when old.state <> 'started'
begin select raise(abort, 'tool_calls_finish_once'); end;

create table briefs (
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

create unique index briefs_id on briefs (brief_id);
create index briefs_by_agent on briefs (agent_id, brief_seq);
create index briefs_by_turn on briefs (turn_id) where turn_id is not null;
create index briefs_without_turn on briefs (created_at) where turn_id is null;

-- Work ----------------------------------------------------------------------------------------

-- `can_run` and `recheck_due_at` are what the record alone says about scheduling; triggers below keep
-- `open_wait_count` and `held_until`. Together they let one small index hold exactly the items that
-- may run, so that agents with nothing to do cost nothing to skip.
create table work_items (
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
    record text not null,
    constraint work_items_wait_count_is_natural check (open_wait_count >= 0),
    constraint work_items_state_is_known check (state in ('open', 'completed')),
    constraint work_items_only_open_ones_run check (
        can_run = 0 or (can_run = 1 and state = 'open')
    ),
    constraint work_items_only_open_ones_are_rechecked check (
        recheck_due_at is null or state = 'open'
    )
) strict;

create index work_items_open on work_items (agent_id, created_at, work_item_id)
where state = 'open';
create index work_items_runnable on work_items (agent_id)
where can_run = 1 and open_wait_count = 0;
create index work_items_held on work_items (held_until)
where can_run = 1 and open_wait_count = 0 and held_until is not null;
create index work_items_recheck on work_items (recheck_due_at) where recheck_due_at is not null;
create index work_items_recheck_by_agent on work_items (agent_id, recheck_due_at)
where recheck_due_at is not null;
create index work_items_completed on work_items (updated_at) where state = 'completed';

create trigger work_items_start_at_revision_one
before insert on work_items when new.revision <> 1
begin select raise(abort, 'work_items_start_at_revision_one'); end;

-- Two writers that read the same revision cannot both write.
create trigger work_items_revision_follows
before update of revision, record on work_items when new.revision <> old.revision + 1
begin select raise(abort, 'work_items_revision_follows'); end;

create trigger work_items_stay_with_their_agent
before update of agent_id on work_items when new.agent_id <> old.agent_id
begin select raise(abort, 'work_items_stay_with_their_agent'); end;

create trigger work_items_complete_once
before update of state on work_items when old.state = 'completed' and new.state <> 'completed'
begin select raise(abort, 'work_items_complete_once'); end;

create table delivery_summaries (
    summary_id text not null primary key,
    work_item_id text not null references work_items (work_item_id) on delete cascade,
    created_at integer not null,
    record text not null
) strict;

create index delivery_summaries_by_item on delivery_summaries (work_item_id);

-- Keyed by agent and item alone: a restart or a new lane must not start the count afresh.
create table activations (
    agent_id text not null references agents (agent_id),
    work_item_id text not null references work_items (work_item_id) on delete cascade,
    revision_seen integer not null,
    no_progress_count integer not null,
    last_at integer not null,
    not_before integer not null,
    primary key (agent_id, work_item_id),
    constraint activations_count_is_natural check (no_progress_count >= 0)
) strict, without rowid;

create index activations_by_item on activations (work_item_id);
create index activations_by_moment on activations (last_at);

-- An item that moved since it was offered is held back by nothing (update_work_item clears it).
create trigger work_items_held_by_offer
after insert on activations
begin
    update work_items set held_until = new.not_before
    where work_item_id = new.work_item_id and revision <= new.revision_seen;
end;

create trigger work_items_held_by_repeated_offer
after update on activations
begin
    update work_items set held_until = new.not_before
    where work_item_id = new.work_item_id and revision <= new.revision_seen;
end;

create trigger work_items_open_are_kept
before delete on work_items when old.state = 'open'
begin select raise(abort, 'work_items_open_are_kept'); end;

create table tasks (
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

create index tasks_open on tasks (task_id) where status in ('queued', 'running', 'cancelling');
create index tasks_ended on tasks (updated_at)
where status in ('completed', 'failed', 'cancelled', 'interrupted');

-- The first terminal status wins; a late report never downgrades it.
create trigger tasks_end_once
before update of status on tasks
when old.status in ('completed', 'failed', 'cancelled', 'interrupted')
begin select raise(abort, 'tasks_end_once'); end;

create trigger tasks_only_move_forward
before update of status on tasks
when (new.status = 'queued' and old.status in ('running', 'cancelling'))
    or (new.status = 'running' and old.status = 'cancelling')
begin select raise(abort, 'tasks_only_move_forward'); end;

create trigger tasks_open_are_kept
before delete on tasks when old.status in ('queued', 'running', 'cancelling')
begin select raise(abort, 'tasks_open_are_kept'); end;

-- Waking --------------------------------------------------------------------------------------

create table timers (
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

create index timers_due on timers (next_fire_at) where status = 'active';
create index timers_active_by_agent on timers (agent_id) where status = 'active';
create index timers_ended on timers (ended_at) where ended_at is not null;

create trigger timers_end_once
before update of status, next_fire_at on timers when old.status <> 'active'
begin select raise(abort, 'timers_end_once'); end;

create trigger timers_active_are_kept
before delete on timers when old.status = 'active'
begin select raise(abort, 'timers_active_are_kept'); end;

-- One row per source: a burst coalesces, and no source's body is lost to another source.
create table wake_hints (
    agent_id text not null references agents (agent_id),
    source_key text not null,
    revision integer not null,
    created_at integer not null,
    record text not null,
    primary key (agent_id, source_key),
    constraint wake_hints_revision_is_positive check (revision >= 1)
) strict;

create trigger wake_hints_revision_rises
before update on wake_hints when new.revision <= old.revision
begin select raise(abort, 'wake_hints_revision_rises'); end;

create table waits (
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

create index waits_open_by_agent on waits (agent_id) where state in ('active', 'triggered');
create index waits_open_by_source on waits (source_id)
where source_id is not null and state in ('active', 'triggered');
create index waits_due on waits (deadline_at) where deadline_at is not null and state = 'active';
create index waits_ended on waits (ended_at) where ended_at is not null;

-- Deleting a work item takes its ended waits with it.
create index waits_by_item on waits (work_item_id) where work_item_id is not null;

create trigger work_items_count_opened_wait
after insert on waits
when new.work_item_id is not null and new.kind <> 'rest' and new.state in ('active', 'triggered')
begin
    update work_items set open_wait_count = open_wait_count + 1
    where work_item_id = new.work_item_id;
end;

create trigger work_items_count_ended_wait
after update of state on waits
when new.work_item_id is not null and new.kind <> 'rest'
    and old.state in ('active', 'triggered') and new.state not in ('active', 'triggered')
begin
    update work_items set open_wait_count = open_wait_count - 1
    where work_item_id = new.work_item_id;
end;

create trigger waits_open_are_kept
before delete on waits when old.state in ('active', 'triggered')
begin select raise(abort, 'waits_open_are_kept'); end;

-- An agent rests once at a time, and a blocked item has one reminder.
create unique index waits_one_rest_per_agent on waits (agent_id)
where kind = 'rest' and state = 'active';
create unique index waits_one_recheck_per_item on waits (work_item_id)
where kind = 'recheck' and state = 'active';

create trigger waits_end_once
before update of state on waits when old.state not in ('active', 'triggered')
begin select raise(abort, 'waits_end_once'); end;

-- What has triggered a wait is a promise already kept; it can only be resolved.
create trigger waits_triggered_is_not_taken_back
before update of state on waits when old.state = 'triggered' and new.state <> 'resolved'
begin select raise(abort, 'waits_triggered_is_not_taken_back'); end;

-- The audit log -------------------------------------------------------------------------------

-- Sequence numbers are given out here, in the transaction of the change they tell of. Events up to
-- `floor_seq` were pruned; what follows is complete.
create table event_heads (
    agent_id text not null primary key references agents (agent_id),
    last_seq integer not null,
    floor_seq integer not null default 0,
    constraint event_heads_floor_is_below check (floor_seq between 0 and last_seq)
) strict, without rowid;

create trigger event_heads_only_rise
before update on event_heads
when new.last_seq < old.last_seq or new.floor_seq < old.floor_seq
begin select raise(abort, 'event_heads_only_rise'); end;

-- The newest event of an agent is never pruned, so `log_seq` is never given out twice.
create table events (
    log_seq integer primary key,
    agent_id text not null,
    event_seq integer not null,
    created_at integer not null,
    event text not null
) strict;

create unique index events_sequence on events (agent_id, event_seq);

-- An agent's events count 1, 2, 3 …; the newest is never pruned, so each has its forerunner.
create trigger events_are_gapless
before insert on events
when new.event_seq <> 1 and not exists (
    select 1 from events where agent_id = new.agent_id and event_seq = new.event_seq - 1
)
begin select raise(abort, 'events_are_gapless'); end;

create trigger events_are_append_only
before update on events
begin select raise(abort, 'events_are_append_only'); end;

create trigger events_leave_from_the_old_end
before delete on events
when old.event_seq > (select floor_seq from event_heads where agent_id = old.agent_id)
begin select raise(abort, 'events_leave_from_the_old_end'); end;

-- Commits that were applied: applying one twice is the same as applying it once. `applied_seq`
-- orders them so that old ones can be forgotten from the old end.
create table commits (
    applied_seq integer primary key,
    commit_id text not null,
    applied_at integer not null
) strict;

create unique index commits_id on commits (commit_id);
