-- Which timeline the numbers of the log belong to. It is made with the database and made anew when a
-- backup is restored, so that a reader whose cursor was given out on another timeline learns of it.
create table log_epoch (
    id integer not null primary key,
    epoch text not null,
    constraint log_epoch_is_one_row check (id = 1),
    constraint log_epoch_is_an_id check (length(epoch) between 8 and 64)
) strict;
