-- schema --
create table progress (
    only_row integer not null primary key check (only_row = 1),
    through_seq integer not null,
    floor_seq integer not null
) strict;
insert into progress (only_row, through_seq, floor_seq) values (1, 0, 0);
create table documents (
    doc_id integer not null primary key,
    source_ref text not null unique,
    source_key text not null,
    kind text not null,
    scope_kind text not null,
    workspace_id text,
    agent_id text not null,
    source_path text,
    title text not null,
    updated_at integer not null,
    authority_class text not null,
    metadata text not null,
    digest text not null,
    body text not null
) strict;
create index documents_by_source on documents (source_key);
create virtual table words using fts5 (
    title, body, content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
insert into words (words, rank) values ('rank', 'bm25(2.0, 1.0)');

-- laid_out --
select type, name, tbl_name, sql from sqlite_schema order by type, name;

-- forget_words --
delete from words where rowid in (select doc_id from documents where source_key = ?1);

-- forget_documents --
delete from documents where source_key = ?1;

-- add_document --
insert into documents (
    source_ref, source_key, kind, scope_kind, workspace_id, agent_id, source_path, title,
    updated_at, authority_class, metadata, digest, body
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);

-- add_words --
insert into words (rowid, title, body) values (?1, ?2, ?3);

-- move_on --
update progress set through_seq = ?1, floor_seq = max(floor_seq, ?2);

-- progressed --
select through_seq, floor_seq from progress;

-- count_documents --
select count(*) from documents;

-- digest --
select digest from documents where source_ref = ?1;

-- search --
-- Ranking costs something for every row, so only the newest of what matches and may be seen is
-- ranked; whole rows are read for what is shown.
with seen as materialized (
    select w.rowid as doc_id, w.rank as score
    from words w cross join documents d on d.doc_id = w.rowid
    where words match ?1 and (?2 or d.scope_kind = 'agent' or d.workspace_id = ?3)
    order by w.rowid desc
    limit ?5
), best as materialized (
    select doc_id, score from seen order by score limit ?4
)
select
    b.score, d.source_ref, d.kind, d.scope_kind, d.workspace_id, d.agent_id, d.source_path,
    d.title, d.updated_at, d.authority_class, d.metadata, d.body
from best b cross join documents d on d.doc_id = b.doc_id
order by b.score;

-- count_matches --
select count(*) from (select 1 from words where words match ?1 limit ?2);

-- get --
select
    0.0, d.source_ref, d.kind, d.scope_kind, d.workspace_id, d.agent_id, d.source_path,
    d.title, d.updated_at, d.authority_class, d.metadata, d.body
from documents d where d.source_ref = ?1;
