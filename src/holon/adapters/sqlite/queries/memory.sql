-- turn_shown --
-- With ?3 the runtime began the turn by itself: it goes on with the turn before it, and with the one
-- of the message its chain began with (?4).
insert into turn_evidence (turn_id, evidence_rank) values (
    ?1,
    max(
        ?2,
        coalesce((
            select e.evidence_rank from turns t
            join turns b on b.agent_id = t.agent_id and b.turn_index = t.turn_index - 1
            join turn_evidence e on e.turn_id = b.turn_id
            where t.turn_id = ?1 and ?3
        ), 0),
        coalesce((
            select max(e.evidence_rank) from turns r join turn_evidence e on e.turn_id = r.turn_id
            where r.message_id = ?4 and ?3
        ), 0)
    )
)
on conflict (turn_id) do update set evidence_rank = max(evidence_rank, excluded.evidence_rank);

-- source_changed --
-- A row is replaced, so that it gets a number of its own again; what it was worth is kept. Without
-- a turn of its own the change is the doing of the one that is open, if one is.
insert or replace into memory_sources (
    agent_id, kind, source_id, evidence_rank, gone, changed_at
) values (
    ?1, ?2, ?3,
    max(
        coalesce((
            select evidence_rank from memory_sources
            where agent_id = ?1 and kind = ?2 and source_id = ?3
        ), 0),
        coalesce((
            select evidence_rank from turn_evidence where turn_id = coalesce(
                ?4, (select turn_id from turns where agent_id = ?1 and state = 'open')
            )
        ), 0)
    ),
    0, ?5
);

-- source_tells_of --
-- A record that tells of several turns is worth what the least of them was shown.
update memory_sources set evidence_rank = max(evidence_rank, coalesce((
    select max(e.evidence_rank) from turns t join turn_evidence e on e.turn_id = t.turn_id
    where t.agent_id = ?1 and t.turn_index between ?4 and ?5
), 0))
where agent_id = ?1 and kind = ?2 and source_id = ?3;
