-- admission_target --
select a.status, a.archived, q.queued_count
from agents a join queues q on q.agent_id = a.agent_id
where a.agent_id = ?1;

-- message --
select seq, state, envelope, settled_reason from messages where message_id = ?1;

-- interjections --
select envelope from messages
where agent_id = ?1 and state = 'queued' and not_before is null and band = 0
order by seq limit ?2;

-- unseen --
select envelope from messages where agent_id = ?1 and unseen = 1 order by seq limit ?2;

-- queued_ticks --
select message_id from messages
where timer_id = ?2 and timer_id is not null and state in ('queued', 'claimed')
    and agent_id = ?1 and state = 'queued'
order by seq;

-- keyed --
select message_id, body_digest from messages
where agent_id = ?1 and surface = ?2 and idempotency_key = ?3;
