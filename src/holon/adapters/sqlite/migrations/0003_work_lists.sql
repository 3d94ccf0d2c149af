-- What an agent did of late, and how long its tools took, found without walking what others did.

create index work_items_completed_by_agent on work_items (agent_id, updated_at, work_item_id)
where state = 'completed';

create index tasks_ended_by_agent on tasks (agent_id, updated_at, task_id)
where status in ('completed', 'failed', 'cancelled', 'interrupted');

-- How many follow-ups an agent has left itself since one message from outside.
create index messages_followups on messages (json_extract(envelope, '$.followup.root_id'))
where kind = 'internal_followup';

-- Results on their way to the model: their tasks, and what those wrote, are still needed.
create index messages_unread_results on messages (agent_id)
where kind = 'task_result' and state in ('queued', 'claimed');

-- One row per agent and tool: calls come and go with their turns, these sums stay.
create table tool_latency (
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
