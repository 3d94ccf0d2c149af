-- The files an agent lives by, changed in a turn that somebody from outside had a word in: one row
-- per agent to which that happened, about the newest such change. The log has the others for as long
-- as it is kept; this is kept for good, so that an operator who looks late still sees it.
create table tainted_instructions (
    agent_id text not null primary key references agents (agent_id),
    path text not null,
    turn_id text not null,
    changed_at integer not null,
    change_count integer not null,
    constraint tainted_instructions_count_is_positive check (change_count >= 1)
) strict, without rowid;

create trigger tainted_instructions_count_on
before update on tainted_instructions
when new.change_count <> old.change_count + 1
begin select raise(abort, 'tainted_instructions_count_on'); end;

create trigger tainted_instructions_are_kept
before delete on tainted_instructions
begin select raise(abort, 'tainted_instructions_are_kept'); end;

-- What the logs already tell of.
with told as (
    select agent_id, max(event_seq) as newest_seq, count(*) as change_count
    from events
    where json_extract(event, '$.kind') = 'instruction_source_changed'
        and json_extract(event, '$.tainted')
    group by agent_id
)
insert into tainted_instructions (agent_id, path, turn_id, changed_at, change_count)
select
    told.agent_id,
    json_extract(e.event, '$.path'),
    json_extract(e.event, '$.turn_id'),
    e.created_at,
    told.change_count
from told
join agents a on a.agent_id = told.agent_id
join events e on e.agent_id = told.agent_id and e.event_seq = told.newest_seq;
