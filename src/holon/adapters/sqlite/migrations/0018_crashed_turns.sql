-- How often in a row a start found that the process before it ended inside this turn, and how far the
-- turn had come by then: a turn that ends the process again without having moved is set aside.
alter table turns add column crash_count integer not null default 0
    constraint turns_crash_count_is_natural check (crash_count >= 0);
alter table turns add column crash_progress integer not null default 0
    constraint turns_crash_progress_is_natural check (crash_progress >= 0);
