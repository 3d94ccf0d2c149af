"""The identity of a home: the original, or a copy of it.

Owns:  the identity of a home, and telling a copy from a home that was moved.
Rule 1: a copy contains every file of its original, so no file can tell the two apart. The inode
        can: a copy is another folder. It is compared with the recorded one; the random id then
        names the home in records too many to compare, and a copy gets a new id when it is first
        opened.
Rule 2: a path identifies nothing: a home that is moved keeps its inode and stays the same home.
Rule 3: device numbers change with each boot and each mount of a container. Where a home was last
        owned under another kernel or in another container only its inode counts; no process
        recorded there is alive here.
"""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

import msgspec

from holon.adapters.exec.process_table import boot_id

_ID_BYTES: int = 16


class FileIdentity(NamedTuple):
    """What the file system says of a folder or a file, whatever its path."""

    device: int
    inode: int


class HomeIdentity(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """One home. The path is where it was when this was written down, for people."""

    id: str
    path: str
    device: int
    inode: int

    @property
    def place(self) -> FileIdentity:
        """The folder it is."""
        return FileIdentity(self.device, self.inode)


def new_identity(home: Path, place: FileIdentity) -> HomeIdentity:
    """Return the identity of a home that has none yet, or has only that of its original."""
    return HomeIdentity(
        id=secrets.token_hex(_ID_BYTES),
        path=shown(home),
        device=place.device,
        inode=place.inode,
    )


def place_of(path: Path, *, follow: bool = True) -> FileIdentity | None:
    """Return what stands at a path, or nothing where nothing does; raises other OSErrors."""
    try:
        facts = os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileIdentity(facts.st_dev, facts.st_ino)


def is_other_home(written_down: HomeIdentity, home: Path, *, boot: str | None) -> bool:
    """Whether this was written down by another home, of which `home` is a copy.

    `boot` is the one it was written down in; where that is not known, it counts as this one.
    """
    try:
        place = place_of(home)
    except OSError:
        return True  # undecidable: treated as foreign, and left alone
    if place is None or boot in (None, boot_id()):
        return written_down.place != place
    return written_down.inode != place.inode


def process_space() -> str:
    """Return what process numbers are valid in: this boot, and this container."""
    try:
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        container = ""
    return f"{boot_id()} {container}"


def shown(home: Path) -> str:
    """Return a path as text for people: a name that is no Unicode loses what is none."""
    return os.fsencode(home).decode("utf-8", "replace")
