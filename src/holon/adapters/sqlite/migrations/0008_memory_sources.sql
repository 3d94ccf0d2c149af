-- What memory search has to know: which records were written, and what the turns that wrote them had
-- been shown. The index itself lies in each agent's home and can be thrown away.

-- One row per record, with the number of its last change: an index remembers how far it has read.
-- `evidence_rank` only rises: 0 operator, 1 runtime, 2 integration, 3 outside. A row that is `gone`
-- says that its record was pruned.
create table memory_sources (
    change_seq integer primary key autoincrement,
    agent_id text not null references agents (agent_id),
    kind text not null,
    source_id text not null,
    evidence_rank integer not null,
    gone integer not null default 0,
    changed_at integer not null,
    constraint memory_sources_kind_is_known check (
        kind = 'workspace_profile' or kind = 'brief' or kind = 'episode' or kind = 'work_item'
        or kind = 'task' or kind = 'tool_execution'
    ),
    constraint memory_sources_rank_is_known check (evidence_rank between 0 and 3),
    constraint memory_sources_gone_is_a_flag check (gone in (0, 1))
) strict;

create unique index memory_sources_one_per_record on memory_sources (agent_id, kind, source_id);
create index memory_sources_by_agent on memory_sources (agent_id, change_seq);
create index memory_sources_gone on memory_sources (changed_at) where gone = 1;

-- Up to which change it is no longer known what has gone: an index that is further behind is begun
-- anew.
create table memory_floors (
    agent_id text not null primary key references agents (agent_id),
    floor_seq integer not null
) strict, without rowid;

-- The least of what a turn was shown.
create table turn_evidence (
    turn_id text not null primary key references turns (turn_id) on delete cascade,
    evidence_rank integer not null,
    constraint turn_evidence_rank_is_known check (evidence_rank between 0 and 3)
) strict, without rowid;

-- What was there before: nobody remembers what its turns were shown, so it counts as evidence.
insert into memory_sources (agent_id, kind, source_id, evidence_rank, changed_at)
select agent_id, 'workspace_profile', workspace_id, 1, attached_at from attached_workspaces;
insert into memory_sources (agent_id, kind, source_id, evidence_rank, changed_at)
select agent_id, 'work_item', work_item_id, 3, updated_at from work_items;
insert into memory_sources (agent_id, kind, source_id, evidence_rank, changed_at)
select agent_id, 'task', task_id, 3, updated_at from tasks;
insert into memory_sources (agent_id, kind, source_id, evidence_rank, changed_at)
select agent_id, 'brief', brief_id, 3, created_at from briefs order by brief_seq;
insert into memory_sources (agent_id, kind, source_id, evidence_rank, changed_at)
select t.agent_id, 'tool_execution', c.effect_id, 3, c.started_at
from tool_calls c join turns t on t.turn_id = c.turn_id
where c.name in ('ExecCommand', 'ExecCommandBatch');
insert into turn_evidence (turn_id, evidence_rank) select turn_id, 3 from turns where state = 'open';
