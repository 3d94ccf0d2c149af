-- create_trigger --
insert into external_triggers (
    external_trigger_id, agent_id, delivery_mode, status, epoch, created_at, revoked_at,
    last_delivered_at, delivery_count
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- move_trigger --
update external_triggers set
    epoch = ?4,
    status = ?5,
    revoked_at = case when ?5 = 'revoked' then coalesce(revoked_at, ?6) else null end
where external_trigger_id = ?1 and agent_id = ?2 and epoch = ?3;

-- count_delivery --
-- Only the address that is in force: one that was rotated or revoked meanwhile meets no row.
update external_triggers set delivery_count = delivery_count + 1, last_delivered_at = ?4
where external_trigger_id = ?1 and agent_id = ?2 and epoch = ?3 and status = 'active';

-- remember_delivery --
insert into trigger_deliveries (
    external_trigger_id, delivery_key, delivered_at, disposition, content_digest
) values (?1, ?2, ?3, ?4, ?5);

-- fold_hint --
-- What the newest delivery leaves unsaid, an earlier one that still waits has said: the fold of
-- `decide/wake/hints.py`. A body is replaced whole and together with its content type, so a patch, which
-- merges objects and drops their nulls, is kept away from both. Modes are those of the newest.
insert into wake_hints (agent_id, source_key, revision, created_at, record)
values (?1, ?2, 1, ?3, ?4)
on conflict (agent_id, source_key) do update set
    revision = wake_hints.revision + 1,
    record = json_set(
        case when json_type(excluded.record, '$.body') is null
            then json_patch(
                json_remove(wake_hints.record, '$.delivery_mode', '$.descriptor_delivery_mode'),
                json_remove(excluded.record, '$.created_at', '$.content_type')
            )
            else json_set(
                json_patch(
                    json_remove(
                        wake_hints.record,
                        '$.delivery_mode', '$.descriptor_delivery_mode', '$.body', '$.content_type'
                    ),
                    json_remove(excluded.record, '$.created_at', '$.body')
                ),
                '$.body', excluded.record -> '$.body'
            )
        end,
        '$.revision', wake_hints.revision + 1
    );
