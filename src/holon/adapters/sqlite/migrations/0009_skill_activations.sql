-- Skills in use. A skill is known by its SKILL.md; there is a row for each way it came into use.
create table skill_activations (
    agent_id text not null references agents (agent_id),
    entrypoint_path text not null,
    load_reason text not null,
    skill_name text not null,
    path text not null,
    source text not null,
    state text not null,
    is_lasting integer not null,  -- session_active before the turn that uses it now
    turn_id text not null,
    turn_index integer not null,
    activated_at integer not null,
    primary key (agent_id, entrypoint_path, load_reason),
    constraint skill_activations_state_is_known check (
        state = 'turn_active' or state = 'session_active'
    ),
    constraint skill_activations_reason_is_known check (
        load_reason = 'read_skill_md' or load_reason = 'run_skill_script'
    ),
    constraint skill_activations_source_is_known check (
        source = 'explicit' or source = 'implicit_from_catalog' or source = 'restored'
        or source = 'inherited'
    ),
    constraint skill_activations_session_lasts check (
        is_lasting = 1 or (is_lasting = 0 and state = 'turn_active')
    )
) strict, without rowid;

-- What the end of a turn has to look at: almost always nothing.
create index skill_activations_of_turns on skill_activations (agent_id)
where state = 'turn_active';

-- What a start has to look at: nothing, after the first.
create index skill_activations_to_restore on skill_activations (source)
where state = 'session_active' and source <> 'restored';
