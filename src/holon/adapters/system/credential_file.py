"""The credentials file of a home.

Owns:  `<home>/credentials.json`: named profiles, each a kind and a secret.
Rule 1: only its owner may read the file. A file other users can read is refused: its secrets are no
        longer secret, and a person should know.
Rule 2: a secret goes from the file to the caller only: into no message, no `repr`, no log.
"""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from holon.adapters.system.private_file import (
    PRIVATE_FILE,
    folder_lock,
    make_home,
    read_bounded,
    replace_file,
)
from holon.model.errors import BadInputError, HolonError
from holon.model.limits import (
    CREDENTIAL_BYTES_MAX,
    CREDENTIALS_FILE_BYTES_MAX,
    ID_CHARS_MAX,
)
from holon.model.providers.models import CredentialKind, StoredCredential
from holon.model.record import Record
from holon.model.values import Instant, from_micros, require_unicode

_PROFILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_VERSION: Final = 1


class BadCredentialError(BadInputError):
    """A profile's name or its secret does not have a form that could be kept and sent."""

    code = "bad_credential"


class NoSuchProfileError(BadInputError):
    """The credentials file has no profile of that name."""

    code = "no_such_profile"
    hint = "`holon config credentials list` shows the profiles there are"


class CredentialsExposedError(HolonError):
    """Others than its owner may read the credentials file."""

    code = "credentials_exposed"


class CredentialsUnreadableError(HolonError):
    """The credentials file does not hold what it should."""

    code = "credentials_unreadable"
    hint = "move it away and set the credentials again"


class ListedCredential(Record, frozen=True, kw_only=True):
    """What may be shown of a profile."""

    name: str
    kind: CredentialKind
    set_at: Instant


class _KeptCredential(Record, frozen=True, kw_only=True):
    kind: CredentialKind
    material: str
    set_at: Instant

    def __repr__(self) -> str:
        return f"_KeptCredential(kind={self.kind.value!r}, material=<secret>)"


class _Kept(Record, frozen=True, kw_only=True):
    version: int = _VERSION
    profiles: Mapping[str, _KeptCredential] = {}


def require_profile_name(name: str) -> None:
    """Raise BadCredentialError unless a profile can be called `name`."""
    if len(name) > ID_CHARS_MAX or not _PROFILE_NAME.match(name):
        raise BadCredentialError(
            "that is no name for a profile",
            hint=f"use letters, digits, '-', '_' and '.', at most {ID_CHARS_MAX} of them",
        )


class CredentialFile:
    """The profiles of one home. Every call reads the file anew: others may have changed it."""

    def __init__(self, home: Path, *, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.path = home / "credentials.json"
        self._home = home
        self._wall_ns = wall_ns

    def profiles(self) -> Mapping[str, StoredCredential]:
        """Return every credential by its profile's name; none when there is no file."""
        return {
            name: StoredCredential(kind=stored.kind, material=stored.material)
            for name, stored in self._read().items()
        }

    def listed(self) -> tuple[ListedCredential, ...]:
        """Return what may be shown, by name."""
        return tuple(
            ListedCredential(name=name, kind=stored.kind, set_at=stored.set_at)
            for name, stored in sorted(self._read().items())
        )

    def put(self, name: str, credential: StoredCredential) -> None:
        """Keep a credential under a name, in place of the one that was there."""
        require_profile_name(name)
        _require_sendable(credential)
        make_home(self._home)
        with folder_lock(self._home):
            stored = _KeptCredential(
                kind=credential.kind,
                material=credential.material,
                set_at=from_micros(self._wall_ns() // 1_000),
            )
            self._write({**self._read(), name: stored})

    def remove(self, name: str) -> None:
        """Forget a profile, or raise NoSuchProfileError."""
        if name not in self._read():
            raise NoSuchProfileError(f"there is no credential profile {name!r}")
        with folder_lock(self._home):
            self._write({key: stored for key, stored in self._read().items() if key != name})

    def _read(self) -> Mapping[str, _KeptCredential]:
        file = read_bounded(self.path, bytes_max=CREDENTIALS_FILE_BYTES_MAX)
        if file is None:
            return {}
        if file.mode & ~PRIVATE_FILE:
            raise CredentialsExposedError(
                f"{self.path} can be read by others than you (mode {file.mode:04o})",
                hint=f"run: chmod 600 {self.path}",
            )
        try:
            stored = msgspec.json.decode(file.content, type=_Kept)
        except msgspec.MsgspecError:
            # The decoder's own words may quote the secret beside the fault.
            raise CredentialsUnreadableError(f"{self.path} is damaged") from None
        if stored.version != _VERSION:
            raise CredentialsUnreadableError(
                f"{self.path} was written by a newer Holon", hint="run that one"
            )
        return stored.profiles

    def _write(self, profiles: Mapping[str, _KeptCredential]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_Kept(profiles=profiles)), indent=2)
        if len(content) > CREDENTIALS_FILE_BYTES_MAX:
            raise BadCredentialError("the credentials file is full", hint="remove old profiles")
        replace_file(self.path, content + b"\n")


def _require_sendable(credential: StoredCredential) -> None:
    """Refuse what no request could carry: the mistake should show now, not at the first use."""
    material = credential.material
    if credential.kind is CredentialKind.NONE:
        raise BadCredentialError("a credential of kind none has nothing to keep")
    if not material.strip():
        raise BadCredentialError("the secret is empty")
    if len(material) > CREDENTIAL_BYTES_MAX:
        raise BadCredentialError(f"the secret is longer than {CREDENTIAL_BYTES_MAX} bytes")
    if credential.kind is CredentialKind.OAUTH:  # a document, of which a part is sent
        require_unicode(material)
        return
    if not all("!" <= character <= "~" for character in material):
        raise BadCredentialError(
            "the secret holds spaces, line breaks or characters outside ASCII",
            hint="copy it again: a key is one word",
        )
