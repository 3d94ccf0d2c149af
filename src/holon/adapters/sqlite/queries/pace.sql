-- remember_pace --
update agents set self_started_count = ?2, self_started_at = ?3, gave_up = ?4 where agent_id = ?1;

-- hold_back --
update messages set not_before = ?3 where message_id = ?1 and agent_id = ?2 and state = 'queued';

-- hold_turns --
update agents set budget_until = ?2 where agent_id = ?1;

-- review_holds --
update agents set budget_until = ?1 where budget_until is not null and budget_until > ?1;

-- count_usage --
insert into usage (scope, step, turn_count, tokens, cost_micros) values (?1, ?2, 1, ?3, ?4)
on conflict (scope, step) do update set
    turn_count = turn_count + 1,
    tokens = tokens + excluded.tokens,
    cost_micros = cost_micros + excluded.cost_micros;

-- forget_usage --
-- What lies before the window, and before so many steps in which some turn ended: a clock that stands
-- ahead moves the window, but adds only as many steps as time has really passed.
delete from usage where step < min(?1, (
    select step from usage where scope = '' order by step desc limit 1 offset ?2 - 1
));
