"""The backup format: a tar file whose last member is its manifest.

Owns:  the manifest, the member names a backup may contain, and which files of a home belong to one.
Rule 1: a file without a manifest was cut short and is not a backup.
Rule 2: a name is checked before use: relative, of known places, without `..`. Only regular files
        and folders are written, and nothing else is extracted.
Rule 3: what another service of this machine could use against the home is left out: the token of
        the control plane always, provider credentials and the trigger key unless requested.
"""

import os
from typing import Final

import msgspec

from holon.adapters.sqlite.memory_index.index_file import DIRTY_FILE, INDEX_FILE
from holon.model.errors import BadInputError, HolonError, HomeUnusableError
from holon.model.limits import (
    BACKUP_DEPTH_MAX,
    BACKUP_NAME_BYTES_MAX,
)
from holon.model.values import Instant

FORMAT: Final = "holon-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
HOME: Final = "home"  # what stands under HOLON_HOME
USER: Final = "user"  # what stands under the user's home: templates, skills, global guidance
DATABASE: Final = f"{HOME}/state/runtime.sqlite"
CONFIG: Final = "config.toml"
AGENTS: Final = "agents"
SECRETS: Final = ("credentials.json", "trigger_key")
NEVER: Final = ("run/token",)
USER_FOLDER: Final = ".agents"
_MADE_ANEW: Final = (INDEX_FILE, DIRTY_FILE)
_NAME_BYTES_MAX: Final = 255


class BackupFailedError(HolonError):
    """The backup could not be made; no file was left."""

    code = "backup_failed"


class BadBackupError(BadInputError):
    """The file is not a complete backup; nothing was restored."""

    code = "bad_backup"
    hint = "use another backup; nothing was restored"


class HomeNotEmptyError(HomeUnusableError):
    """The target of a restore is not empty."""

    code = "home_not_empty"


class BackedUpFile(msgspec.Struct, frozen=True, kw_only=True):
    """One plain file of a backup."""

    path: str
    bytes: int
    sha256: str


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the home that is not in the backup, and why."""

    path: str
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a backup."""

    format: str
    version: int
    holon_version: str
    schema_version: int
    created_at: Instant
    home_dir: str  # for people: where it was made
    files: tuple[BackedUpFile, ...]
    folders: tuple[str, ...]
    skipped: tuple[SkippedFile, ...]
    left_out: tuple[str, ...]  # secrets that were there


def is_made_anew(name: str) -> bool:
    """Whether a file of an agent's home is derived, and made again when it is missing."""
    return name.startswith(_MADE_ANEW)


def require_known_name(name: str) -> None:
    """Raise BadBackupError for a name that no backup of ours has."""
    parts = name.split("/")
    try:
        encoded = os.fsencode(name)
    except UnicodeError:
        raise BadBackupError(f"{name!r} is no name of a file") from None
    is_sound = (
        0 < len(encoded) <= BACKUP_NAME_BYTES_MAX
        and len(parts) <= BACKUP_DEPTH_MAX
        and "\0" not in name
        and all(0 < len(os.fsencode(each)) <= _NAME_BYTES_MAX for each in parts)
        and not {".", ".."} & set(parts)
    )
    if not is_sound or not _is_of_known_place(parts):
        raise BadBackupError(f"the backup holds {name[:200]!r}, which belongs to no home")


def _is_of_known_place(parts: list[str]) -> bool:
    match parts:
        case ["home", "state", *rest]:
            return rest in ([], ["runtime.sqlite"])
        case ["home", "agents", *_] | ["user", ".agents", *_]:
            return True
        case ["home", name]:
            return name in (CONFIG, *SECRETS)
        case ["home"] | ["user"]:
            return True
        case _:
            return False
