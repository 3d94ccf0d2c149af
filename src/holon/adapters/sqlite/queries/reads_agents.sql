-- agent --
-- The newest settled turn is kept as long as its agent, so its terminal is not stored twice. An
-- identity is written once; that it is no longer in use stands beside it.
select
    iif(a.archived, json_set(a.identity, '$.status', 'archived'), a.identity),
    a.generation, a.status, a.status_since, a.status_reason, a.sleeping_until,
    a.last_wake_reason, a.current_work_item_id, o.turn_id, a.turn_index,
    q.admitted_count, a.model_round_count, a.input_tokens, a.output_tokens,
    a.model_override, a.last_closure, t.terminal, a.last_brief_at, a.passed_over,
    q.queued_count, a.self_started_count, a.self_started_at, a.gave_up, a.budget_until
from agents a
join queues q on q.agent_id = a.agent_id
left join turns o on o.agent_id = a.agent_id and o.state = 'open'
left join turns t on t.agent_id = a.agent_id and t.turn_index = a.turn_index
where a.agent_id = ?1;

-- heads --
-- The oldest of each band that waits for nothing, the one that has waited out its moment longest, and
-- one whose hold is void (?3).
select seq, message_id, band from messages where seq in (
    (
        select min(seq) from messages
        where agent_id = ?1 and state = 'queued' and not_before is null and band = 0
    ),
    (
        select min(seq) from messages
        where agent_id = ?1 and state = 'queued' and not_before is null and band = 1
    ),
    (
        select min(seq) from messages
        where agent_id = ?1 and state = 'queued' and not_before is null and band = 2
    ),
    (
        select min(seq) from messages
        where agent_id = ?1 and state = 'queued' and not_before is null and band = 3
    ),
    (
        select seq from messages
        where agent_id = ?1 and state = 'queued' and not_before is not null and not_before <= ?2
        order by not_before limit 1
    ),
    ?3
)
order by band, seq;

-- waits_until --
-- A message that waits and has had a turn was put off in it; one that waits before its first turn is
-- held back, because the agent gets nowhere. A hold that ends later than any can (?3) is void: the
-- clock was set back. What was put off waits for the moment a provider named.
select
    min(case when exists (select 1 from turns t where t.message_id = m.message_id)
        then m.not_before end),
    min(case when m.not_before <= ?3
            and not exists (select 1 from turns t where t.message_id = m.message_id)
        then m.not_before end),
    min(case when m.not_before > ?3
            and not exists (select 1 from turns t where t.message_id = m.message_id)
        then m.seq end)
from messages m
where m.agent_id = ?1 and m.state = 'queued' and m.not_before is not null and m.not_before > ?2;

-- around --
-- What there is of an agent besides its row: most of it is nothing, and is not asked for again.
select
    (select message_id from messages where agent_id = ?1 and state = 'claimed'),
    exists (select 1 from wake_hints where agent_id = ?1),
    exists (select 1 from waits where agent_id = ?1 and state in ('active', 'triggered')),
    exists (select 1 from work_items where agent_id = ?1 and state = 'open'),
    (select count(*) from timers where agent_id = ?1 and status = 'active');

-- hints --
select record from wake_hints where agent_id = ?1 order by created_at, source_key;

-- open_waits --
select record, state, triggered_by, ended_at, work_item_id from waits
where agent_id = ?1 and state in ('active', 'triggered')
order by rowid;

-- weighed_item --
select w.record, v.revision_seen, v.no_progress_count, v.last_at, v.not_before
from work_items w
left join activations v on v.agent_id = w.agent_id and v.work_item_id = w.work_item_id
where w.work_item_id = ?1;

-- weighed_queue --
-- When there are more open items than are weighed, those that may run come first.
select w.record, v.revision_seen, v.no_progress_count, v.last_at, v.not_before
from work_items w
left join activations v on v.agent_id = w.agent_id and v.work_item_id = w.work_item_id
where w.work_item_id in (
    select work_item_id from work_items
    where agent_id = ?1 and state = 'open' and work_item_id is not ?2
    order by can_run = 0 or open_wait_count > 0, created_at, work_item_id
    limit ?3
)
order by w.created_at, w.work_item_id;

-- due_rechecks --
select w.record, v.revision_seen, v.no_progress_count, v.last_at, v.not_before
from work_items w
left join activations v on v.agent_id = w.agent_id and v.work_item_id = w.work_item_id
where w.agent_id = ?1 and w.recheck_due_at <= ?2
order by w.recheck_due_at, w.work_item_id
limit ?3;

-- restless --
-- Only small partial indexes are walked, so sleeping agents cost nothing, and a long queue costs no
-- more than a short one: `waiting` hops from agent to agent. A claim counts whatever the posture:
-- someone has to go on with it. Work counts where it may be offered: not while a message waits for
-- its moment, nor when the runtime gave up. A hold that ends later than any can (?2) is void.
with recursive waiting (agent_id) as (
    select min(agent_id) from messages where state = 'queued' and not_before is null
    union all
    select (
        select min(agent_id) from messages
        where state = 'queued' and not_before is null and agent_id > w.agent_id
    )
    from waiting w where w.agent_id is not null
)
select agent_id from messages where state = 'claimed'
union
select agent_id from agents
where status not in ('stopped', 'paused')
    and (budget_until is null or budget_until <= ?1) and agent_id in (
    select agent_id from waiting
    union all
    select agent_id from messages
    where state = 'queued' and not_before is not null and not_before <= ?1
    union all
    select m.agent_id from messages m
    where m.state = 'queued' and m.not_before is not null and m.not_before > ?2
        and not exists (select 1 from turns t where t.message_id = m.message_id)
    union all
    select agent_id from wake_hints
    union all
    select g.agent_id from agents g
    where g.gave_up = 0
        and g.agent_id in (
            select agent_id from work_items
            where can_run = 1 and open_wait_count = 0 and (held_until is null or held_until <= ?1)
            union all
            select agent_id from work_items
            where recheck_due_at is not null and recheck_due_at <= ?1
        )
        and not exists (
            select 1 from messages m
            where m.agent_id = g.agent_id and m.state = 'queued'
                and m.not_before is not null and m.not_before > ?1
        )
    union all
    select agent_id from agents where budget_until is not null and budget_until <= ?1
);

-- void_holds --
select a.agent_id from agents a
where a.status not in ('stopped', 'paused') and a.budget_until is null and a.agent_id in (
    select m.agent_id from messages m
    where m.state = 'queued' and m.not_before is not null and m.not_before > ?1
        and not exists (select 1 from turns t where t.message_id = m.message_id)
);

-- agents_with_open_turns --
select agent_id from turns where state = 'open' order by agent_id;

-- archived_without_history --
-- Asked for agents by name. An archived agent owes nothing, so only what has ended can be left.
select json_set(a.identity, '$.status', 'archived')
from json_each(?1) cross join agents a on a.agent_id = json_each.value
where a.archived = 1
    and not exists (select 1 from turns t where t.agent_id = a.agent_id)
    and not exists (select 1 from briefs b where b.agent_id = a.agent_id)
    and not exists (
        select 1 from tasks k
        where k.agent_id = a.agent_id and k.status in ('completed', 'failed', 'cancelled', 'interrupted')
    )
    and not exists (select 1 from episodes e where e.agent_id = a.agent_id)
    and not exists (
        select 1 from work_items w where w.agent_id = a.agent_id and w.state = 'completed'
    )
order by json_each.key;
