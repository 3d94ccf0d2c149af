"""A database is brought to the known schema once, or refused and left alone."""

from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.database.connection import APPLICATION_ID, open_memory, open_writer
from holon.adapters.sqlite.database.migrate import (
    SCHEMA_FILE,
    apply_all,
    inspect_file,
    known_migrations,
    migrate,
    whole_schema,
)
from holon.model.errors import NotAHolonDatabaseError, SchemaTooNewError
from scripts.gen_schema import schema_text

EVERYTHING = "select type, name, tbl_name, sql from sqlite_schema order by type, rowid"


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    versions = [step.version for step in known_migrations()]
    assert versions == list(range(1, len(versions) + 1))


def test_a_new_file_gets_every_migration_and_says_whose_it_is(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "new.sqlite")
    migrate(connection)
    assert connection.pragma("user_version") == known_migrations()[-1].version
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("auto_vacuum") == 2, "incremental"


def test_the_schema_of_a_new_file_is_written_from_the_migrations() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run `make docs`"
    assert whole_schema().version == known_migrations()[-1].version


def test_a_new_file_is_what_the_migrations_one_by_one_would_have_made_of_it() -> None:
    at_once, step_by_step = open_memory(), open_memory()
    migrate(at_once)
    apply_all(step_by_step, known_migrations())
    for kind in ("table", "trigger"):  # triggers also in the same order: they fire in it
        made = [row for row in at_once.execute(EVERYTHING) if row[0] == kind]
        assert made == [row for row in step_by_step.execute(EVERYTHING) if row[0] == kind]
    assert set(at_once.execute(EVERYTHING)) == set(step_by_step.execute(EVERYTHING))
    assert at_once.pragma("user_version") == step_by_step.pragma("user_version")


def test_the_migrations_put_nothing_into_an_empty_database() -> None:
    connection = open_memory()
    apply_all(connection, known_migrations())
    tables = connection.execute("select name from sqlite_schema where type = 'table'").fetchall()
    rows = {name: connection.execute(f"select * from {name}").fetchall() for (name,) in tables}
    counters = rows.pop("sqlite_sequence")  # of rows that were numbered
    assert {name for name, found in rows.items() if found} == set()
    assert {last for _, last in counters} <= {0}


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "twice.sqlite"
    connection = open_writer(path)
    migrate(connection)
    schema = connection.execute("select * from sqlite_schema").fetchall()
    migrate(connection)
    connection.close()
    assert inspect_file(path)
    again = open_writer(path)
    migrate(again)
    assert again.execute("select * from sqlite_schema").fetchall() == schema


def test_a_migration_that_fails_leaves_the_version_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = open_writer(tmp_path / "half.sqlite")
    first, *_ = known_migrations()
    broken = first._replace(script="create table half (x); create table half (x);")
    monkeypatch.setattr(
        "holon.adapters.sqlite.database.migrate.known_migrations", lambda: (broken,)
    )
    with pytest.raises(apsw.SQLError):
        migrate(connection)
    assert connection.pragma("user_version") == 0
    assert connection.execute("select count(*) from sqlite_schema").fetchall() == [(0,)]


def test_a_newer_schema_is_refused_with_both_versions_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "newer.sqlite"
    connection = open_writer(path)
    migrate(connection)
    connection.pragma("user_version", 99)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNewError) as refused:
        inspect_file(path)
    assert "version 99" in refused.value.message
    assert f"up to {known_migrations()[-1].version}" in refused.value.message
    assert refused.value.hint is not None
    assert path.read_bytes() == before


def test_a_newer_schema_that_only_the_log_knows_of_is_refused_too(tmp_path: Path) -> None:
    path, copy = tmp_path / "live.sqlite", tmp_path / "copy.sqlite"
    connection = open_writer(path)
    migrate(connection)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.pragma("user_version", 99)  # stays in the log, as after a crash
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    before = copy.read_bytes()
    with pytest.raises(SchemaTooNewError):
        inspect_file(copy)
    assert copy.read_bytes() == before


@pytest.mark.parametrize("content", [None, b""], ids=["absent", "empty"])
def test_nothing_at_all_is_fine(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "nothing.sqlite"
    if content is not None:
        path.write_bytes(content)
    assert not inspect_file(path)


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "runtime.sqlite").mkdir()
    (tmp_path / "runtime.sqlite" / "something").touch()
    with pytest.raises(NotAHolonDatabaseError, match="not a plain file") as refused:
        inspect_file(tmp_path / "runtime.sqlite")
    assert "holon restore" in (refused.value.hint or "")
