-- Agents whose work item waits for its operator are found without a look at every open item.
create index work_items_needing_input on work_items (agent_id)
where state = 'open' and json_extract(record, '$.plan_status') = 'needs_input';
