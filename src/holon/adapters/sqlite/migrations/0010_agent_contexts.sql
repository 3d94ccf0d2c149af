-- What an agent reads of its past: turns from here on in full, and a recap of those before. An agent
-- that has let nothing go yet has no row. The recap is not in `agents`, whose rows change often.
create table agent_contexts (
    agent_id text not null primary key references agents (agent_id),
    history_from_turn integer not null,
    compression_epoch integer not null,
    recap text not null,
    constraint agent_contexts_first_turn_is_one check (history_from_turn >= 1),
    constraint agent_contexts_epoch_is_positive check (compression_epoch >= 1),
    constraint agent_contexts_recap_is_a_list check (json_type(recap) = 'array')
) strict;

create trigger agent_contexts_only_move_on
before update on agent_contexts
when new.history_from_turn < old.history_from_turn
    or new.compression_epoch <> old.compression_epoch + 1
    or new.agent_id <> old.agent_id
begin select raise(abort, 'agent_contexts_only_move_on'); end;

create trigger agent_contexts_are_kept
before delete on agent_contexts
begin select raise(abort, 'agent_contexts_are_kept'); end;
