-- has_table --
-- A database of an older version has none until it is migrated, which only its owner may do.
select 1 from sqlite_schema where type = 'table' and name = 'home_owner';

-- owner --
select generation, home_id, path, device, inode, lock_device, lock_inode, pid, start_ticks,
    process_space
from home_owner;

-- take --
insert into home_owner (
    only_row, generation, home_id, path, device, inode, lock_device, lock_inode, pid, start_ticks,
    process_space
) values (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
on conflict (only_row) do update set
    generation = excluded.generation,
    home_id = excluded.home_id,
    path = excluded.path,
    device = excluded.device,
    inode = excluded.inode,
    lock_device = excluded.lock_device,
    lock_inode = excluded.lock_inode,
    pid = excluded.pid,
    start_ticks = excluded.start_ticks,
    process_space = excluded.process_space,
    question = 0,
    answer = 0;

-- fence --
select generation, pid from home_owner;

-- is_asked --
-- Looked at before answering: an update takes the lock of writers even when it finds no row.
select 1 from home_owner where answer <> question;

-- answer --
update home_owner set answer = question;

-- ask --
update home_owner set question = ?1;

-- is_answered --
select 1 from home_owner where answer = ?1;

-- move_lock --
update home_owner set lock_device = ?1, lock_inode = ?2 where generation = ?3;
