-- gone_turn_briefs --
-- Of the rows that retention.sql chose and is about to remove: their sources say so from now on.
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, ?2
from json_each(?1) g
cross join briefs b on b.turn_id = g.value
cross join memory_sources s
    on s.agent_id = b.agent_id and s.kind = 'brief' and s.source_id = b.brief_id;

-- gone_turn_calls --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, ?2
from json_each(?1) g
cross join turns t on t.turn_id = g.value
cross join tool_calls c on c.turn_id = t.turn_id
cross join memory_sources s
    on s.agent_id = t.agent_id and s.kind = 'tool_execution' and s.source_id = c.effect_id;

-- gone_briefs --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, ?2
from json_each(?1) g
cross join briefs b on b.brief_seq = g.value
cross join memory_sources s
    on s.agent_id = b.agent_id and s.kind = 'brief' and s.source_id = b.brief_id;

-- gone_tasks --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, ?2
from json_each(?1) g
cross join tasks t on t.task_id = g.value
cross join memory_sources s
    on s.agent_id = t.agent_id and s.kind = 'task' and s.source_id = t.task_id;

-- gone_work_items --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, ?2
from json_each(?1) g
cross join work_items w on w.work_item_id = g.value
cross join memory_sources s
    on s.agent_id = w.agent_id and s.kind = 'work_item' and s.source_id = w.work_item_id;

-- gone_episodes --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, ?2
from json_each(?1) g
cross join episodes e on e.episode_seq = g.value
cross join memory_sources s
    on s.agent_id = e.agent_id and s.kind = 'episode' and s.source_id = e.episode_id;

-- raise_memory_floors --
insert into memory_floors (agent_id, floor_seq)
select agent_id, max(change_seq) from memory_sources where change_seq in (
    select change_seq from memory_sources
    where gone = 1 and changed_at <= ?2
    order by changed_at, change_seq
    limit ?1
)
group by agent_id
on conflict (agent_id) do update set floor_seq = max(floor_seq, excluded.floor_seq);

-- delete_gone --
delete from memory_sources where change_seq in (
    select change_seq from memory_sources
    where gone = 1 and changed_at <= ?2
    order by changed_at, change_seq
    limit ?1
);
