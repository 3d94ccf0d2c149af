-- usage --
select step, turn_count, tokens, cost_micros from usage
where scope = ?1 and step >= ?2
order by step;

-- held_agent --
select agent_id from agents where budget_until is not null limit 1;

-- agent_count --
select count(*) from (select 1 from agents where archived = 0 limit ?1);
