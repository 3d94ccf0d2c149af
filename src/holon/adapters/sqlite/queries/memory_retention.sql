-- gone_turn_briefs --
-- What retention.sql is about to remove, chosen the same way: their rows say so from now on.
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, :now
from (
    select b.agent_id, b.brief_id from briefs b where b.turn_id in (
        select t.turn_id from turns t join agents a on a.agent_id = t.agent_id
        where t.state = 'settled' and t.settled_at > :low and t.settled_at <= :high
            and t.turn_index <= a.turn_index - :turns_kept
        order by t.settled_at, t.turn_id
        limit :batch
    )
) g cross join memory_sources s
    on s.agent_id = g.agent_id and s.kind = 'brief' and s.source_id = g.brief_id;

-- gone_turn_calls --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, :now
from (
    select t.agent_id, t.turn_id from turns t join agents a on a.agent_id = t.agent_id
    where t.state = 'settled' and t.settled_at > :low and t.settled_at <= :high
        and t.turn_index <= a.turn_index - :turns_kept
    order by t.settled_at, t.turn_id
    limit :batch
) g
cross join tool_calls c on c.turn_id = g.turn_id
cross join memory_sources s
    on s.agent_id = g.agent_id and s.kind = 'tool_execution' and s.source_id = c.effect_id;

-- gone_briefs --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, :now
from (
    select agent_id, brief_id from briefs
    where turn_id is null and created_at > :low and created_at <= :high
    order by created_at, brief_seq
    limit :batch
) g cross join memory_sources s
    on s.agent_id = g.agent_id and s.kind = 'brief' and s.source_id = g.brief_id;

-- gone_tasks --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, :now
from (
    select agent_id, task_id from tasks
    where status in ('completed', 'failed', 'cancelled', 'interrupted')
        and updated_at > :low and updated_at <= :high
        and task_id not in (
            select envelope ->> '$.task_id' from messages
            where kind = 'task_result' and state in ('queued', 'claimed')
        )
    order by updated_at, task_id
    limit :batch
) g cross join memory_sources s
    on s.agent_id = g.agent_id and s.kind = 'task' and s.source_id = g.task_id;

-- gone_work_items --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, :now
from (
    select w.agent_id, w.work_item_id from work_items w
    where w.state = 'completed' and w.updated_at > :low and w.updated_at <= :high
        and w.open_wait_count = 0
        and not exists (select 1 from agents a where a.current_work_item_id = w.work_item_id)
    order by w.updated_at, w.work_item_id
    limit :batch
) g cross join memory_sources s
    on s.agent_id = g.agent_id and s.kind = 'work_item' and s.source_id = g.work_item_id;

-- gone_episodes --
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
)
select s.agent_id, s.kind, s.source_id, s.evidence_rank, 1, :now
from (
    select e.agent_id, e.episode_id from episodes e
    where e.finalized_at > :low and e.finalized_at <= :high
        and exists (
            select 1 from episodes n
            where n.agent_id = e.agent_id and n.end_turn_index >= e.end_turn_index
                and n.episode_seq > e.episode_seq
            limit 1 offset :episodes_kept - 1
        )
    order by e.finalized_at, e.episode_seq
    limit :batch
) g cross join memory_sources s
    on s.agent_id = g.agent_id and s.kind = 'episode' and s.source_id = g.episode_id;

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
