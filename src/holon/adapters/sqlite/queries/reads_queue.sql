-- admission_target --
select a.status, a.archived, q.queued_count
from agents a join queues q on q.agent_id = a.agent_id
where a.agent_id = ?1;

-- message --
-- A queued message that has had a turn was put off in it.
select
    m.seq, m.state, m.envelope, m.settled_reason,
    m.state = 'queued' and exists (select 1 from turns t where t.message_id = m.message_id)
from messages m where m.message_id = ?1;

-- interjections --
-- Only what may enter a running turn is counted: however much else waits in this band, it hides none.
select envelope from messages
where agent_id = ?1 and state = 'queued' and not_before is null and band = 0
    and kind = 'operator_prompt' and origin_kind = 'operator' and trust = 'trusted_operator'
order by seq limit ?2;

-- unseen --
select envelope from messages where agent_id = ?1 and unseen = 1 order by seq limit ?2;

-- crowded --
select m.agent_id from messages m cross join agents a on a.agent_id = m.agent_id
where m.unseen = 1 and a.archived = 0
group by m.agent_id
having count(*) > ?1;

-- oldest_unseen --
-- What a task of the agent came to is not displaced by what others send.
select message_id from messages
where agent_id = ?1 and unseen = 1 and kind <> 'task_result' and seq < (
    select n.seq from messages n
    where n.agent_id = ?1 and n.unseen = 1 order by n.seq desc limit 1 offset ?2 - 1
)
order by seq limit ?3;

-- queued_ticks --
select message_id from messages
where timer_id = ?2 and timer_id is not null and state in ('queued', 'claimed')
    and agent_id = ?1 and state = 'queued'
order by seq;

-- keyed --
select message_id, body_digest from messages
where agent_id = ?1 and surface = ?2 and idempotency_key = ?3;
