-- A provider may name a moment, minutes or hours away, before which asking again is pointless. The
-- turn then ends as deferred, and its message waits in the queue until `not_before`.

alter table messages add column not_before integer
constraint messages_only_queued_ones_wait check (not_before is null or state = 'queued');

-- 0, or the turn's own index when it was put off.
alter table turns add column deferred integer not null default 0
constraint turns_deferred_names_the_turn check (deferred = 0 or deferred = turn_index);

-- The queue proper holds what may be claimed now; what waits for its moment stands beside it.
drop index messages_queue;

create index messages_queue on messages (agent_id, band, seq)
where state = 'queued' and not_before is null;

create index messages_deferred_of_agent on messages (agent_id, not_before)
where state = 'queued' and not_before is not null;

create index messages_deferred on messages (not_before)
where state = 'queued' and not_before is not null;

-- A claim is handed back only to wait for a moment; anything else would run its message twice.
drop trigger messages_claim_is_not_handed_back;

create trigger messages_claim_is_not_handed_back
before update of state on messages
when old.state = 'claimed' and new.state = 'queued' and new.not_before is null
begin select raise(abort, 'messages_claim_is_not_handed_back'); end;

create trigger queues_count_handed_back
after update of state on messages when old.state = 'claimed' and new.state = 'queued'
begin
    update queues set queued_count = queued_count + 1 where agent_id = new.agent_id;
end;

-- A message leads to at most one turn that is not put off.
drop index turns_one_per_message;

create unique index turns_one_per_message on turns (message_id, deferred);
