"""A database is brought to the known schema once, or refused and left alone."""

from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.connection import APPLICATION_ID, open_writer
from holon.adapters.sqlite.migrate import inspect_file, known_migrations, migrate
from holon.model.errors import SchemaTooNewError


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    versions = [step.version for step in known_migrations()]
    assert versions == list(range(1, len(versions) + 1))


def test_a_new_file_gets_every_migration_and_says_whose_it_is(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "new.sqlite")
    migrate(connection)
    assert connection.pragma("user_version") == known_migrations()[-1].version
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("auto_vacuum") == 2, "incremental"


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "twice.sqlite"
    connection = open_writer(path)
    migrate(connection)
    schema = connection.execute("select * from sqlite_schema").fetchall()
    migrate(connection)
    connection.close()
    inspect_file(path)
    again = open_writer(path)
    migrate(again)
    assert again.execute("select * from sqlite_schema").fetchall() == schema


def test_a_migration_that_fails_leaves_the_version_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = open_writer(tmp_path / "half.sqlite")
    first, *_ = known_migrations()
    broken = first._replace(script="create table half (x); create table half (x);")
    monkeypatch.setattr("holon.adapters.sqlite.migrate.known_migrations", lambda: (broken,))
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
    inspect_file(path)
