-- queue_message --
-- For more than one at a time, more rows are added (statements.py).
insert into messages (
    message_id, agent_id, state, band, kind, origin_kind, trust, authority_class,
    admission_context, surface, idempotency_key, body_digest, tick_key, timer_id, wait_id,
    admitted_at, envelope
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- key_owner --
select message_id, body_digest from messages
where agent_id = ?1 and surface = ?2 and idempotency_key = ?3;

-- claim_message --
update messages set state = 'claimed', claimed_generation = ?3, not_before = null
where message_id = ?1 and agent_id = ?2;

-- hold_message --
-- A resumed turn keeps its claim, under the new generation.
update messages set claimed_generation = ?3
where message_id = ?1 and agent_id = ?2 and state = 'claimed';

-- settle_message --
update messages
set state = ?3, settled_at = ?4, settled_reason = ?5, unseen = ?6, not_before = null
where message_id = ?1 and agent_id = ?2;

-- defer_message --
update messages set state = 'queued', claimed_generation = null, not_before = ?3
where message_id = ?1 and agent_id = ?2 and state = 'claimed';

-- release_deferred --
update messages set not_before = null
where agent_id = ?1 and state = 'queued' and not_before is not null;

-- mark_seen --
update messages set unseen = 0 where message_id = ?1 and agent_id = ?2;
