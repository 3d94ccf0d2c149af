-- Addresses under which outsiders may wake an agent. What opens one is derived from its id, its
-- epoch and a key in a file of its own; nothing here is a secret.
create table external_triggers (
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

-- An agent has one trigger: asking for it again never makes another.
create unique index external_triggers_one_per_agent on external_triggers (agent_id);

create trigger external_triggers_epoch_never_falls
before update of epoch on external_triggers when new.epoch < old.epoch
begin select raise(abort, 'external_triggers_epoch_never_falls'); end;

-- An address that was taken back stays void: only a new one brings the trigger back.
create trigger external_triggers_return_with_a_new_epoch
before update of status on external_triggers
when old.status = 'revoked' and new.status = 'active' and new.epoch = old.epoch
begin select raise(abort, 'external_triggers_return_with_a_new_epoch'); end;

create trigger external_triggers_revoked_take_nothing
before update of delivery_count on external_triggers when old.status <> 'active'
begin select raise(abort, 'external_triggers_revoked_take_nothing'); end;

create trigger external_triggers_stay_with_their_agent
before update of external_trigger_id, agent_id, created_at on external_triggers
begin select raise(abort, 'external_triggers_stay_with_their_agent'); end;

create trigger external_triggers_are_kept
before delete on external_triggers
begin select raise(abort, 'external_triggers_are_kept'); end;

-- Deliveries whose senders may repeat them: a digest of the id each went by, and what came of it.
create table trigger_deliveries (
    external_trigger_id text not null references external_triggers (external_trigger_id),
    delivery_key text not null,
    delivered_at integer not null,
    disposition text not null,
    primary key (external_trigger_id, delivery_key),
    constraint trigger_deliveries_key_is_a_digest check (length(delivery_key) = 64),
    constraint trigger_deliveries_disposition_is_known check (
        disposition = 'triggered' or disposition = 'coalesced' or disposition = 'parked'
    )
) strict, without rowid;

create index trigger_deliveries_by_age on trigger_deliveries (delivered_at);
