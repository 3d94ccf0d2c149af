-- Which home this database belongs to, and which process may write to it. One row. A process that opens
-- the home raises the generation, and every group of commits checks it: who was replaced writes no more.
create table home_owner (
    only_row integer primary key constraint home_owner_is_one check (only_row = 1),
    generation integer not null constraint home_owner_generation_positive check (generation > 0),
    -- The home: a random id, and the device and inode of the folder that has it. A copy is another one.
    home_id text not null,
    path text not null,
    device text not null,
    inode text not null,
    -- The lock file its owner holds, and the process that does.
    lock_device text not null,
    lock_inode text not null,
    pid integer not null,
    start_ticks integer not null,
    process_space text not null,
    -- Is the owner alive? Who cannot see its process asks here, and the owner repeats the number.
    question integer not null default 0,
    answer integer not null default 0
) strict;

create trigger home_owner_generation_goes_up
before update of generation on home_owner when new.generation <= old.generation
begin select raise(abort, 'home_owner_generation_goes_up'); end;
