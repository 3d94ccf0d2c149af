-- remember_context --
insert into agent_contexts (agent_id, history_from_turn, compression_epoch, recap)
values (?1, ?2, ?3, ?4)
on conflict (agent_id) do update set
    history_from_turn = excluded.history_from_turn,
    compression_epoch = excluded.compression_epoch,
    recap = excluded.recap;
