"""The credentials file: private from the first byte, whole or not at all, and discreet."""

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from holon.adapters.system.credential_file import (
    BadCredentialError,
    CredentialFile,
    CredentialsExposedError,
    CredentialsUnreadableError,
    NoSuchProfileError,
)
from holon.adapters.system.private_file import FileUnusableError
from holon.model.errors import BadInputError
from holon.model.limits import CREDENTIAL_BYTES_MAX, CREDENTIALS_FILE_BYTES_MAX
from holon.model.providers.models import CredentialKind, StoredCredential

SECRET = "sk-very-secret-0123456789"
NOON_NS = 1_767_268_800 * 1_000_000_000


def key(material: str = SECRET, kind: CredentialKind = CredentialKind.API_KEY) -> StoredCredential:
    return StoredCredential(kind=kind, material=material)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_put_is_found_listed_and_removed(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path, wall_ns=lambda: NOON_NS)
    assert file.profiles() == {}
    assert file.listed() == ()
    file.put("work", key())
    file.put("codex", key('{"access_token":\n "ü"}', CredentialKind.OAUTH))
    file.put("work", key("second", CredentialKind.BEARER_TOKEN))
    assert file.profiles() == {
        "codex": key('{"access_token":\n "ü"}', CredentialKind.OAUTH),
        "work": key("second", CredentialKind.BEARER_TOKEN),
    }
    listed = file.listed()
    assert [(one.name, one.kind) for one in listed] == [
        ("codex", CredentialKind.OAUTH),
        ("work", CredentialKind.BEARER_TOKEN),
    ]
    assert listed[0].set_at.isoformat() == "2026-01-01T12:00:00+00:00"
    file.remove("work")
    assert list(file.profiles()) == ["codex"]
    with pytest.raises(NoSuchProfileError, match="'work'"):
        file.remove("work")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_home_and_file_are_private_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with umask(mask):
        CredentialFile(home).put("work", key())
    assert mode_of(home) == 0o700
    assert mode_of(home / "credentials.json") == 0o600


def test_no_byte_is_written_before_the_mode_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    opened = os.open

    def watched(path: "os.PathLike[str] | str", flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            seen.append(mode)
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", watched)
    CredentialFile(tmp_path).put("work", key())
    assert seen == [0o600]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666, 0o700])
def test_a_file_others_may_read_is_refused_with_the_remedy(mode: int, tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    file.put("work", key())
    content = file.path.read_bytes()
    file.path.chmod(mode)
    for deed in (
        file.profiles,
        file.listed,
        lambda: file.put("x", key()),
        lambda: file.remove("x"),
    ):
        with pytest.raises(CredentialsExposedError) as caught:
            deed()
        assert f"{mode:04o}" in caught.value.message
        assert caught.value.hint == f"run: chmod 600 {file.path}"
    assert file.path.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "credential"),
    [
        ("", key()),
        ("a/b", key()),
        ("-x", key()),
        ("x" * 65, key()),
        ("work", key("")),
        ("work", key("  ")),
        ("work", key("two words")),
        ("work", key("sk-1\n")),
        ("work", key("sk-ü")),
        ("work", key("\x00")),
        ("work", key("x" * (CREDENTIAL_BYTES_MAX + 1))),
        ("work", key("\ud800", CredentialKind.OAUTH)),
        ("work", key(SECRET, CredentialKind.NONE)),
    ],
)
def test_what_could_never_be_sent_is_refused_and_not_repeated(
    name: str, credential: StoredCredential, tmp_path: Path
) -> None:
    file = CredentialFile(tmp_path)
    with pytest.raises(BadInputError) as caught:
        file.put(name, credential)
    if credential.material.strip():
        assert credential.material not in f"{caught.value.message}{caught.value.hint}"
    assert not file.path.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"profiles": {"work": "sk-very-secret-0123456789"}}',
        b'{"profiles": {"work": {"kind": "sk-very-secret-0123456789"}}}',
        b'{"sk-very-secret-0123456789": 1}',
        b'{"version": 2, "profiles": {}}',
        b"\xff",
    ],
)
def test_a_damaged_file_is_refused_without_quoting_it(content: bytes, tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    file.path.write_bytes(content)
    file.path.chmod(0o600)
    for deed in (file.profiles, lambda: file.put("x", key("another"))):
        with pytest.raises(CredentialsUnreadableError) as caught:
            deed()
        assert SECRET not in f"{caught.value.message}{caught.value.hint}"
        assert caught.value.__cause__ is None
    assert file.path.read_bytes() == content


def test_a_secret_is_in_no_repr(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    file.put("work", key())
    for thing in (file, file.profiles(), file.listed(), file._read()):
        assert SECRET not in repr(thing)


def test_a_full_disk_leaves_the_old_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = CredentialFile(tmp_path)
    file.put("work", key())

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileUnusableError, match="No space left") as caught:
            file.put("other", key("another"))
    assert "another" not in caught.value.message
    assert file.profiles() == {"work": key()}
    assert [path.name for path in tmp_path.iterdir()] == ["credentials.json"]


def test_the_file_has_a_bound(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    material = "x" * CREDENTIAL_BYTES_MAX
    fitting = CREDENTIALS_FILE_BYTES_MAX // CREDENTIAL_BYTES_MAX - 1
    for number in range(fitting):
        file.put(f"p{number}", key(material))
    with pytest.raises(BadCredentialError, match="full"):
        file.put("one-too-many", key(material))
    assert len(file.profiles()) == fitting


def test_writers_at_the_same_time_do_not_undo_each_other(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: CredentialFile(tmp_path).put(name, key(name)), names))
    assert set(CredentialFile(tmp_path).profiles()) == set(names)


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from holon.adapters.system.credential_file import CredentialFile
from holon.model.providers.models import CredentialKind, StoredCredential
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
CredentialFile(Path(sys.argv[1])).put(
    "other", StoredCredential(kind=CredentialKind.API_KEY, material="another")
)
"""


def test_a_kill_in_the_middle_of_a_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    file.put("work", key())
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert file.profiles() == {"work": key()}
    assert all(mode_of(path) == 0o600 for path in tmp_path.iterdir())
    file.put("third", key("third"))  # the lock went with its holder
    assert json.loads(file.path.read_bytes())["profiles"]["third"]["material"] == "third"
