-- What agents remember of their own work. Both tables move only with the commit that settles a turn.

-- One row per agent: its working memory with its revision, what of it was shown to the model, and
-- the episode that is still open, all in `state`; what surfaces show stands beside it.
create table working_memories (
    agent_id text not null primary key references agents (agent_id),
    revision integer not null,
    last_prompted_revision integer not null,
    active_episode_id text,
    archived_episode_count integer not null,
    state text not null,
    constraint working_memories_prompted_is_known check (
        last_prompted_revision between 0 and revision
    ),
    constraint working_memories_archived_is_natural check (archived_episode_count >= 0)
) strict, without rowid;

create trigger working_memories_go_forward
before update on working_memories
when new.revision < old.revision or new.revision > old.revision + 1
    or new.last_prompted_revision < old.last_prompted_revision
    or new.archived_episode_count < old.archived_episode_count
begin select raise(abort, 'working_memories_go_forward'); end;

-- Finished stretches of work.
create table episodes (
    episode_seq integer primary key,
    episode_id text not null,
    agent_id text not null references agents (agent_id),
    end_turn_index integer not null,
    finalized_at integer not null,
    record text not null
) strict;

create unique index episodes_one_per_id on episodes (episode_id);
create index episodes_by_agent on episodes (agent_id, end_turn_index, episode_seq);
create index episodes_by_age on episodes (finalized_at);

create trigger episodes_never_change
before update on episodes
begin select raise(abort, 'episodes_never_change'); end;
