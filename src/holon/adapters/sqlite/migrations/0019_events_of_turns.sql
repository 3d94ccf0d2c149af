-- The turn whose commit wrote an event that does not name its turn itself, such as a work item or a
-- task written by a tool call. Replay looks up the turn's message and work item by it.
alter table events add column turn_id text;
