"""A backup of a home, and a home of a backup: whole, checked, and of what it says."""

import ctypes
import fcntl
import hashlib
import io
import json
import os
import random
import shutil
import stat
import tarfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holon.adapters.backup.backup_format import (
    DATABASE,
    BackupFailedError,
    BadBackupError,
    HomeNotEmptyError,
    Manifest,
)
from holon.adapters.backup.home_backup import BackupRequest, back_up
from holon.adapters.backup.home_restore import Restored, RestoreRequest, restore
from holon.adapters.files import new_tree
from holon.adapters.files.new_tree import SCRATCH_PREFIX, scratch_in
from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.errors import HomeInUseError
from tests.adapters.sqlite.check.story import write_story
from tests.adapters.sqlite.test_database_underneath import overwrite_pages_of
from tests.support.builders import a_message, an_admission
from tests.support.database_plants import make_foreign_database

pytestmark = pytest.mark.long

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def quiet(what: str, done: int, total: int) -> None:
    """Whoever waits is told elsewhere."""


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A home with a database and everything around it."""
    home = tmp_path / "home"
    await write_story(home)
    agent = home / "agents" / "main"
    (agent / "skills" / "own").mkdir(parents=True)
    (agent / "memory").mkdir()
    (agent / "empty").mkdir()
    (agent / "AGENTS.md").write_text("Be kind.\n")
    (agent / "memory" / "self.md").write_text("I am main.\n" * 1_000)
    (agent / "skills" / "own" / "run.sh").write_text("#!/bin/sh\n")
    (agent / "skills" / "own" / "run.sh").chmod(0o755)
    (agent / "Grüße und\nmehr.txt").write_text("odd name")
    (home / "config.toml").write_text("[model]\n")
    (home / "credentials.json").write_text("{}")
    (home / "trigger_key").write_text("k" * 40)
    (home / "run" / "token").write_text("t" * 40)
    user = tmp_path / "user" / ".agents" / "templates" / "mine"
    user.mkdir(parents=True)
    (user / "AGENTS.md").write_text("A template.\n")
    return home


def made(home: Path, *, with_secrets: bool = False, name: str = "b.tar") -> tuple[Path, Manifest]:
    file = home.parent / name
    asked = BackupRequest(home, file, home.parent / "user", with_secrets=with_secrets)
    return file, back_up(asked, quiet, now=NOW)


def restored(file: Path, home: Path, *, replaces: bool = False) -> Restored:
    return restore(RestoreRequest(file, home, replaces), quiet, now=NOW)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }


@pytest.mark.requirement("backup:whole-home")
async def test_what_an_agent_lives_on_comes_back(home: Path, tmp_path: Path) -> None:
    file, manifest = made(home)
    target = tmp_path / "deep" / "again"
    result = restored(file, target)

    assert tree(target / "agents") == tree(home / "agents")
    assert (target / "agents" / "main" / "empty").is_dir()
    assert os.access(target / "agents" / "main" / "skills" / "own" / "run.sh", os.X_OK)
    assert (target / "config.toml").read_bytes() == (home / "config.toml").read_bytes()
    assert result.user_files is not None
    assert (result.user_files / ".agents" / "templates" / "mine" / "AGENTS.md").is_file()
    assert (
        check_database(database_path(target)).counts == check_database(database_path(home)).counts
    )
    assert check_database(database_path(target)).is_clean
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert manifest.skipped == ()
    assert not [each for each in home.parent.iterdir() if each.name.startswith(".")], "no litter"


@pytest.mark.requirement("backup:secrets-only-when-asked-for")
@pytest.mark.parametrize("with_secrets", [True, False])
async def test_secrets_are_left_out_unless_asked_for_and_the_token_always(
    home: Path, tmp_path: Path, with_secrets: bool
) -> None:
    file, manifest = made(home, with_secrets=with_secrets)
    restored(file, tmp_path / "again")
    found = {
        name for name in ("credentials.json", "trigger_key") if (tmp_path / "again" / name).exists()
    }
    left = set(manifest.left_out)
    assert "run/token" in left
    assert b"t" * 40 not in file.read_bytes()
    if with_secrets:
        assert found == {"credentials.json", "trigger_key"}
        assert stat.S_IMODE((tmp_path / "again" / "trigger_key").stat().st_mode) == 0o600
    else:
        assert found == set()
        assert left == {"credentials.json", "trigger_key", "run/token"}


@pytest.mark.requirement("backup:links-are-not-followed")
async def test_links_and_what_is_no_file_are_left_out_and_named(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not of this home")
    agent = home / "agents" / "main"
    (agent / "link").symlink_to(secret)
    (agent / "folder").symlink_to(tmp_path)
    os.mkfifo(agent / "pipe")
    deep = agent
    for _ in range(90):
        deep = deep / "d"
    deep.mkdir(parents=True)
    file, manifest = made(home)
    assert b"not of this home" not in file.read_bytes()
    reasons = {each.path.rpartition("/")[2]: each.reason for each in manifest.skipped}
    assert reasons["link"] == reasons["folder"] == "it is a symbolic link"
    assert reasons["pipe"] == "it is no plain file"
    assert "it lies too deep" in reasons.values()
    restored(file, tmp_path / "again")


@pytest.mark.requirement("backup:consistent-while-a-service-writes")
async def test_a_backup_holds_what_was_acknowledged_before_it_and_whole_groups(
    home: Path, tmp_path: Path
) -> None:
    store = open_store(home)
    acked = []
    for number in range(30):
        message = a_message(f"msg_live_{number}")
        await store.apply(audited(an_admission(message)))
        acked.append(message.id)
        if number % 10 == 9:
            file, _ = made(home, name=f"b{number}.tar")
            target = tmp_path / f"again{number}"
            restored(file, target)
            assert check_database(database_path(target), acked=acked).is_clean
    await store.apply(audited(an_admission(a_message("msg_after"))))
    await store.close()


@pytest.mark.requirement("backup:restored-is-another-timeline")
async def test_a_restored_home_has_another_epoch(home: Path, tmp_path: Path) -> None:
    file, _ = made(home)
    epochs = set()
    for name in ("one", "two"):
        result = restored(file, tmp_path / name)
        store = open_store(tmp_path / name)
        assert await store.reads.events.log_epoch() == result.event_log_epoch
        epochs.add(result.event_log_epoch)
        await store.close()
    first = open_store(home)
    epochs.add(str(await first.reads.events.log_epoch()))
    await first.close()
    again = open_store(home)
    assert await again.reads.events.log_epoch() in epochs, "a restart is the same timeline"
    await again.close()
    assert len(epochs) == 3


@pytest.mark.requirement("backup:only-what-is-sound")
@pytest.mark.parametrize("table", ["events", "messages"])
async def test_an_unsound_database_makes_no_backup(home: Path, table: str) -> None:
    overwrite_pages_of(database_path(home), table)
    with pytest.raises(BackupFailedError, match="not sound"):
        made(home)
    assert not (home.parent / "b.tar").exists()


async def test_a_file_that_is_there_is_not_replaced_unless_asked_for(home: Path) -> None:
    file, _ = made(home)
    before = file.read_bytes()
    with pytest.raises(BackupFailedError, match="already there"):
        made(home)
    assert file.read_bytes() == before
    back_up(BackupRequest(home, file, overwrites=True), quiet, now=NOW)
    assert file.read_bytes() != before
    with pytest.raises(BackupFailedError, match="lies in the home"):
        back_up(BackupRequest(home, home / "agents" / "b.tar"), quiet, now=NOW)


@pytest.mark.requirement("backup:restore-refuses-a-home-in-the-way")
async def test_a_home_in_the_way_is_refused_and_kept_when_it_is_to_be_replaced(
    home: Path,
) -> None:
    file, _ = made(home)
    (home / "agents" / "main" / "later.txt").write_text("after the backup")
    before = tree(home)
    with pytest.raises(HomeNotEmptyError):
        restored(file, home)
    store = open_store(home)
    with pytest.raises(HomeInUseError):
        restored(file, home, replaces=True)
    await store.close()
    result = restored(file, home, replaces=True)
    assert result.kept is not None
    assert (result.kept / "agents" / "main" / "later.txt").is_file()
    assert not (home / "agents" / "main" / "later.txt").exists()
    assert set(tree(result.kept)) == set(before)


# Backups that somebody damaged or made up -----------------------------------------------------


def abandoned(parent: Path) -> Path:
    """Leave what a killed backup or restore leaves."""
    scratch = parent / f"{SCRATCH_PREFIX}0123456789abcdef"
    (scratch / "home").mkdir(parents=True)
    (scratch / "home" / "credentials.json").write_text("a secret")
    return scratch


@pytest.mark.requirement("backup:killed-leaves-nothing-for-long")
async def test_what_a_killed_backup_left_is_gone_after_the_next_one(home: Path) -> None:
    left = abandoned(home.parent)
    elsewhere = home.parent / "mine"
    elsewhere.mkdir()
    (home.parent / f"{SCRATCH_PREFIX}link").symlink_to(elsewhere)
    with scratch_in(home.parent) as in_use:
        made(home)
        assert in_use.is_dir()
    assert not left.exists()
    assert elsewhere.is_dir()


@pytest.mark.requirement("backup:killed-leaves-nothing-for-long")
async def test_what_a_killed_restore_left_is_gone_after_the_next_one(
    home: Path, tmp_path: Path
) -> None:
    file, _ = made(home)
    left = abandoned(tmp_path)
    with scratch_in(tmp_path) as in_use:
        restored(file, tmp_path / "again")
        assert in_use.is_dir()
    assert not left.exists()


def test_a_scratch_folder_that_was_swept_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = fcntl.flock, list[bool]()

    def late(handle: int, operation: int) -> None:
        if not swept:
            swept.append(True)
            monkeypatch.setattr(fcntl, "flock", lock)
            new_tree.sweep_abandoned(tmp_path)
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with scratch_in(tmp_path) as scratch:
        assert swept
        assert scratch.is_dir()
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("backup:restore-refuses-a-home-in-the-way")
@pytest.mark.parametrize("at_once", [True, False], ids=["exchange", "one by one"])
async def test_an_interrupted_replacement_never_removes_the_home_that_was_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    file, _ = made(home)
    before = database_path(home).read_bytes()
    if not at_once:
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    rename, stop_after = Path.rename, 0

    def renamed(path: Path, target: Path) -> Path:
        nonlocal stop_after
        done = rename(path, target)
        stop_after -= 1
        if not stop_after:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Path, "rename", renamed)
    for stop in range(1, 5):
        where = home.parent / f"try{stop}" / "home"
        shutil.copytree(home, where)
        stop_after = stop
        with suppress(KeyboardInterrupt):
            restored(file, where, replaces=True)
        left = [database_path(folder) for folder in where.parent.iterdir()]
        assert before in [path.read_bytes() for path in left if path.exists()], stop


def no_home_of(file: Path, target: Path) -> str:
    with pytest.raises(BadBackupError) as refused:
        restored(file, target)
    assert refused.value.hint is not None
    assert not target.exists()
    assert [each for each in target.parent.iterdir() if each.name.startswith(".")] == []
    return refused.value.message


@pytest.mark.requirement("backup:whole-or-not-at-all")
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.9, 0.95])
async def test_a_backup_that_was_cut_restores_nothing(
    home: Path, tmp_path: Path, share: float
) -> None:
    file, _ = made(home)
    os.truncate(file, int(file.stat().st_size * share))
    no_home_of(file, tmp_path / "again")


@pytest.mark.requirement("backup:whole-or-not-at-all")
@pytest.mark.parametrize("seed", range(25))
async def test_flipped_bytes_restore_nothing_or_the_very_same(
    home: Path, tmp_path: Path, seed: int
) -> None:
    file, _ = made(home)
    chance = random.Random(seed)
    content = bytearray(file.read_bytes())
    for _ in range(3):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    target = tmp_path / "again"
    try:
        restored(file, target)
    except BadBackupError:
        assert not target.exists()
    else:  # only padding, or what is told to people in the manifest
        assert tree(target / "agents") == tree(home / "agents")


Member = tuple[tarfile.TarInfo, bytes]


def a_member(name: str, content: bytes = b"x", **other: object) -> Member:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in other.items():
        setattr(member, key, value)
    return member, content


def a_link(name: str, kind: bytes, target: str) -> Member:
    return a_member(name, b"", type=kind, linkname=target)


ODD: dict[str, Callable[[], Member]] = {
    "above": lambda: a_member("home/agents/../../../escaped"),
    "absolute": lambda: a_member("/escaped"),
    "elsewhere": lambda: a_member("escaped"),
    "run files": lambda: a_member("home/run/token"),
    "a log beside the database": lambda: a_member("home/state/runtime.sqlite-wal"),
    "a symbolic link": lambda: a_link("home/agents/x", tarfile.SYMTYPE, "/etc"),
    "a hard link": lambda: a_link("home/agents/x", tarfile.LNKTYPE, "/etc/passwd"),
    "a pipe": lambda: a_link("home/agents/x", tarfile.FIFOTYPE, ""),
    "a device": lambda: a_link("home/agents/x", tarfile.CHRTYPE, ""),
    "the database twice": lambda: a_member(DATABASE),
    "a file below a file": lambda: a_member(f"{DATABASE}/below"),
    "not in the manifest": lambda: a_member("home/agents/main/extra"),
    "a long name": lambda: a_member("home/agents/" + "n" * 3_000),
    "an empty part": lambda: a_member("home/agents//x"),
    "a dot": lambda: a_member("home/agents/./x"),
}


@pytest.mark.requirement("backup:nothing-escapes")
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
async def test_what_no_backup_of_ours_holds_restores_nothing(
    home: Path, tmp_path: Path, odd: Callable[[], Member], first: bool
) -> None:
    file, _ = made(home)
    tampered = tmp_path / "tampered.tar"
    with tarfile.open(file) as old, tarfile.open(tampered, "w") as new:
        members = [(each, old.extractfile(each)) for each in old.getmembers()]
        extra, content = odd()
        if first:
            new.addfile(extra, io.BytesIO(content))
        for each, body in members:
            if each.name == "manifest.json" and not first:
                new.addfile(extra, io.BytesIO(content))
            new.addfile(each, body)
    no_home_of(tampered, tmp_path / "again")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.requirement("backup:bounded-memory")
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_header_that_claims_gigabytes_is_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("home/agents/x")
    member.type, member.size = kind, 8 << 30
    file = tmp_path / "bomb.tar"
    file.write_bytes(member.tobuf(tarfile.GNU_FORMAT))
    os.truncate(file, 9 << 30)  # no blocks are behind it
    no_home_of(file, tmp_path / "again")


def test_what_is_no_backup_at_all_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"Dear diary,\n" * 1_000)
    no_home_of(file, tmp_path / "sub" / "again")
    no_home_of(tmp_path / "missing", tmp_path / "sub" / "again")
    no_home_of(tmp_path, tmp_path / "sub" / "again")
    os.mkfifo(tmp_path / "pipe")
    no_home_of(tmp_path / "pipe", tmp_path / "sub" / "again")


async def test_a_backup_of_another_database_is_refused(home: Path, tmp_path: Path) -> None:
    file, _ = made(home)
    other = tmp_path / "other.sqlite"
    make_foreign_database(other)
    with_it = tmp_path / "with.tar"
    with tarfile.open(file) as old, tarfile.open(with_it, "w") as new:
        for each in old.getmembers():
            body = old.extractfile(each)
            content = b"" if body is None else body.read()
            if each.name == DATABASE:
                content = other.read_bytes()
            if each.name == "manifest.json":
                told = json.loads(content)
                told["files"][0] |= {
                    "bytes": other.stat().st_size,
                    "sha256": hashlib.sha256(other.read_bytes()).hexdigest(),
                }
                content = json.dumps(told).encode()
            each.size = len(content)
            new.addfile(each, io.BytesIO(content))
    assert "database" in no_home_of(with_it, tmp_path / "again")


async def test_a_full_disk_leaves_no_backup(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("holon.adapters.backup.home_backup.os.fsync", full)
    with pytest.raises(BackupFailedError, match="No space left"):
        made(home)
    assert sorted(each.name for each in home.parent.iterdir()) == ["home", "user"]
    shutil.rmtree(home)
