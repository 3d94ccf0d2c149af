-- Agents that are kept for their history only.

-- What counts towards how many there may be, found without walking those of the past.
create index agents_in_use on agents (agent_id) where archived = 0;

-- Whoever still has something to do, to wait for or to be called by is in use.
create trigger agents_archived_owe_nothing
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

create trigger agents_archived_stay_so
before update of archived on agents when old.archived = 1 and new.archived = 0
begin select raise(abort, 'agents_archived_stay_so'); end;
