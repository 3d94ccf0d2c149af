"""What an installation leaves in a skill's folder, and whether the folder is still as it was.

Owns:  `.holon-skill-install.json` and the hash of a skill's files.
Rule 1: the hash covers names, permission to run and content; what running a script leaves behind
        (compiled Python) is not covered.
Rule 2: a folder that cannot be read whole, or is larger than what is ever installed, counts as
        changed.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from holon.adapters.system.private_file import FileUnusableError, read_bounded
from holon.model.limits import KIB, TREE_BYTES_MAX, TREE_FILES_COUNT_MAX
from holon.model.record import Record
from holon.model.skill_ref import SkillRef

RECORD_FILE: Final = ".holon-skill-install.json"
_RECORD_BYTES_MAX: Final = 64 * KIB
_LEFT_BEHIND: Final = "__pycache__"


class InstallRecord(Record, frozen=True, kw_only=True):
    """Where a copied skill came from, and the hash of its files then."""

    kind: str
    source: str
    tree_sha256: str


class _TooLargeError(Exception):
    """More than is ever installed."""


def write_record(folder: Path, ref: SkillRef) -> None:
    """Remember in a fresh copy where it came from."""
    tree_sha256 = tree_hash(folder)
    if tree_sha256 is None:
        raise OSError(f"{folder} cannot be read")
    record = InstallRecord(kind=ref.kind, source=ref.source, tree_sha256=tree_sha256)
    path = folder / RECORD_FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    path.chmod(0o600)


def read_record(folder: Path) -> InstallRecord | None:
    """Return what an installation left; nothing where none did, or not in this form."""
    try:
        found = read_bounded(folder / RECORD_FILE, bytes_max=_RECORD_BYTES_MAX)
        return None if found is None else msgspec.json.decode(found.content, type=InstallRecord)
    except (FileUnusableError, msgspec.MsgspecError):
        return None


def tree_hash(folder: Path) -> str | None:
    """Return the hash of a skill's files, or nothing when they cannot be told."""
    whole = hashlib.sha256()
    try:
        for name, path in _files(folder):
            runs = os.access(path, os.X_OK)
            content = hashlib.sha256(_content(path)).hexdigest()
            whole.update(f"{name}\0{int(runs)}\0{content}\n".encode())
    except (OSError, UnicodeError, _TooLargeError):
        return None
    return whole.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for above, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [each for each in folders if each != _LEFT_BEHIND]
        links = [each for each in folders if Path(above, each).is_symlink()]
        for name in (*names, *links):
            path = Path(above, name)
            relative = str(path.relative_to(folder))
            if relative != RECORD_FILE:
                found.append((relative, path))
        if len(found) > TREE_FILES_COUNT_MAX:
            raise _TooLargeError
    return iter(sorted(found))


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"link " + os.fsencode(path.readlink())
    if not path.is_file() or path.stat().st_size > TREE_BYTES_MAX:
        raise _TooLargeError
    return path.read_bytes()


def _raise(error: OSError) -> None:
    raise error
