-- commits_end --
-- The last commit of the next batch, and the moment by which it was applied: the latest credible one
-- up to it; and when its clock stood in the future, that of one that came after it. Nothing, when
-- there is no such moment.
with recursive
last_one (applied_seq, applied_at) as (
    select applied_seq, applied_at from commits where applied_seq > ?1
    order by applied_seq limit 1 offset ?2
),
ahead (applied_seq, applied_at) as (
    select applied_seq, applied_at from last_one
    union all
    select c.applied_seq, c.applied_at
    from ahead
    cross join commits c on c.applied_seq = (
        select min(n.applied_seq) from commits n where n.applied_seq >= ahead.applied_seq + ?2
    )
    where ahead.applied_at > ?3
)
select o.applied_seq, max(
    (select applied_at from ahead where applied_at <= ?3),
    ifnull(
        (
            select max(applied_at) from commits
            where applied_seq > ?1 and applied_seq <= o.applied_seq and applied_at <= ?3
        ),
        -9223372036854775808
    )
)
from last_one o;

-- old_end --
-- How far into that batch commits were applied before a moment: not behind one that is younger.
with batch (applied_seq, applied_at) as (
    select applied_seq, applied_at from commits where applied_seq > ?1 order by applied_seq limit ?2
)
select max(applied_seq) from batch
where applied_at <= ?4 and applied_seq < ifnull(
    (select min(applied_seq) from batch where applied_at > ?4 and applied_at <= ?3),
    9223372036854775807
);

-- delete_commits --
delete from commits
where applied_seq > ?1 and applied_seq <= ?2 and not commit_id glob ?3
    and applied_at > ?4 and applied_at <= ?5;

-- delete_keyed_commits --
-- The id of a request that a key names is all that remembers the key.
delete from commits
where applied_seq > ?1 and applied_seq <= ?2 and commit_id glob ?3
    and applied_at > ?4 and applied_at <= ?5;

-- delete_trigger_deliveries --
delete from trigger_deliveries where (external_trigger_id, delivery_key) in (
    select external_trigger_id, delivery_key from trigger_deliveries
    where delivered_at > ?2 and delivered_at <= ?3
    order by delivered_at
    limit ?1
);
