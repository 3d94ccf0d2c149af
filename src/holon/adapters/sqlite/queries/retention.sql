-- next_events --
select log_seq, created_at from events where log_seq > ?1 order by log_seq limit ?2;

-- prunable_events --
-- Per agent, how far its log may be cut: never into its newest events. Of an archived agent the last
-- one is enough.
select e.agent_id, max(e.event_seq)
from events e
join event_heads h on h.agent_id = e.agent_id
join agents a on a.agent_id = e.agent_id
where e.log_seq > ?1 and e.log_seq <= ?2
    and e.event_seq <= h.last_seq - iif(a.archived, 1, ?3)
group by e.agent_id;

-- raise_floor --
update event_heads set floor_seq = ?2 where agent_id = ?1 and floor_seq < ?2;

-- delete_events --
delete from events where agent_id = ?1 and event_seq <= ?2;

-- leaving_turns --
-- Transcript, tool calls and briefs of a turn go with it. An archived agent never looks back. A turn
-- is what says of a message in the queue that it was put off: it stays as long as that.
select t.turn_id from turns t join agents a on a.agent_id = t.agent_id
where t.state = 'settled' and t.settled_at > :low and t.settled_at <= :high
    and t.turn_index <= a.turn_index - iif(a.archived, 0, :turns_kept)
    and not exists (
        select 1 from messages m
        where m.message_id = t.message_id and m.state in ('queued', 'claimed')
    )
order by t.settled_at, t.turn_id
limit :batch;

-- delete_turns --
delete from turns where turn_id in (select value from json_each(?1));

-- leaving_messages --
-- An idempotency key is remembered for a while, whatever else has to go. What the model has not seen
-- yet stays until it has, or until the agent is archived and never will.
select m.seq from messages m cross join agents a on a.agent_id = m.agent_id
where m.settled_at is not null and m.settled_at > :low and m.settled_at <= :high
    and (m.idempotency_key is null or m.settled_at <= :keys_until)
    and (m.unseen = 0 or a.archived = 1)
    and not exists (select 1 from turns t where t.message_id = m.message_id)
order by m.settled_at
limit :batch;

-- delete_messages --
delete from messages where seq in (select value from json_each(?1));

-- leaving_briefs --
select brief_seq from briefs
where turn_id is null and created_at > :low and created_at <= :high
order by created_at, brief_seq
limit :batch;

-- delete_briefs --
delete from briefs where brief_seq in (select value from json_each(?1));

-- leaving_tasks --
-- Where a key gave the task its id, its row is what remembers the key; so it is with timers and work
-- items. A task whose result the model has not seen stays.
select task_id from tasks
where status in ('completed', 'failed', 'cancelled', 'interrupted')
    and updated_at > :low and updated_at <= :high
    and (updated_at <= :keys_until or task_id not glob :keyed)
    and task_id not in (
        select envelope ->> '$.task_id' from messages
        where kind = 'task_result' and state in ('queued', 'claimed')
            and envelope ->> '$.task_id' is not null
    )
    and task_id not in (
        select envelope ->> '$.task_id' from messages
        where unseen = 1 and kind = 'task_result' and envelope ->> '$.task_id' is not null
    )
order by updated_at, task_id
limit :batch;

-- delete_tasks --
delete from tasks where task_id in (select value from json_each(?1));

-- leaving_timers --
-- A timer says of a tick that was put off whether it still has a meaning.
select t.timer_id from timers t
where t.ended_at is not null and t.ended_at > :low and t.ended_at <= :high
    and (t.ended_at <= :keys_until or t.timer_id not glob :keyed)
    and not exists (
        select 1 from messages m
        where m.timer_id = t.timer_id and m.timer_id is not null
            and m.state in ('queued', 'claimed')
    )
order by t.ended_at
limit :batch;

-- delete_timers --
delete from timers where timer_id in (select value from json_each(?1));

-- leaving_waits --
select wait_id from waits
where ended_at is not null and ended_at > :low and ended_at <= :high
order by ended_at
limit :batch;

-- delete_waits --
delete from waits where wait_id in (select value from json_each(?1));

-- leaving_work_items --
-- Reports and activation memory go with their item; an item an agent still points at stays.
select w.work_item_id from work_items w
where w.state = 'completed' and w.updated_at > :low and w.updated_at <= :high
    and (w.updated_at <= :keys_until or w.work_item_id not glob :keyed)
    and w.open_wait_count = 0
    and not exists (select 1 from agents a where a.current_work_item_id = w.work_item_id)
order by w.updated_at, w.work_item_id
limit :batch;

-- delete_work_items --
delete from work_items where work_item_id in (select value from json_each(?1));

-- leaving_episodes --
-- An agent's newest ones stay, as far as its prompts weigh them: an archived one has no more prompts.
select e.episode_seq from episodes e cross join agents a on a.agent_id = e.agent_id
where e.finalized_at > :low and e.finalized_at <= :high
    and (a.archived = 1 or exists (
        select 1 from episodes n
        where n.agent_id = e.agent_id and n.end_turn_index >= e.end_turn_index
            and n.episode_seq > e.episode_seq
        limit 1 offset :episodes_kept - 1
    ))
order by e.finalized_at, e.episode_seq
limit :batch;

-- delete_episodes --
delete from episodes where episode_seq in (select value from json_each(?1));
