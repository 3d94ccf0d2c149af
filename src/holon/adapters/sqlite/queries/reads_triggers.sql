-- trigger_of --
select
    external_trigger_id, agent_id, delivery_mode, status, epoch, created_at, revoked_at,
    last_delivered_at, delivery_count
from external_triggers where agent_id = ?1;

-- trigger_target --
select
    t.external_trigger_id, t.agent_id, t.delivery_mode, t.status, t.epoch, t.created_at,
    t.revoked_at, t.last_delivered_at, t.delivery_count,
    a.status, a.archived, q.queued_count,
    (select count(*) from wake_hints h where h.agent_id = t.agent_id),
    exists (select 1 from wake_hints h where h.agent_id = t.agent_id and h.source_key = ?2),
    d.disposition, d.content_digest
from external_triggers t
join agents a on a.agent_id = t.agent_id
join queues q on q.agent_id = t.agent_id
left join trigger_deliveries d
    on d.external_trigger_id = t.external_trigger_id and d.delivery_key = ?3
where t.external_trigger_id = ?1;
