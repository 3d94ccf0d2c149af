-- How agents are kept from running away: turns the runtime starts by itself are counted, and what
-- all turns use is added up.

-- Turns in a row that the runtime started by itself and that moved nothing, when the last of them
-- began, and whether the runtime has given up on starting more of them.
alter table agents add column self_started_count integer not null default 0
constraint agents_self_started_is_natural check (self_started_count >= 0);
alter table agents add column self_started_at integer;
alter table agents add column gave_up integer not null default 0
constraint agents_gave_up_is_a_flag check (gave_up in (0, 1));

-- Until when a used-up budget keeps the agent from model turns; the moment may have passed.
alter table agents add column budget_until integer;

create index agents_over_budget on agents (budget_until) where budget_until is not null;

-- What turns used, in steps of five minutes: a row for each agent, and one (scope '') for all of
-- them together, so that no budget is ever added up over agents. Rows that no window reaches any
-- more leave with the next turn of anybody.
create table usage (
    scope text not null,
    step integer not null,
    turn_count integer not null,
    tokens integer not null,
    cost_micros integer not null,
    primary key (scope, step),
    constraint usage_is_natural check (turn_count >= 0 and tokens >= 0 and cost_micros >= 0)
) strict, without rowid;

create index usage_by_age on usage (step);
