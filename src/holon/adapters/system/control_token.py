"""The operator's bearer token and the trigger key, each in a file.

Owns:  creating the token file, checking who may read it, and rereading it when it changes;
       `<home>/trigger_key`, mode 0600, created on first use.
Rule 1: a file is created with mode 0600, whole or not at all; one that other users can read is
        refused, with the command that repairs it.
Rule 2: a token is what its file holds now: replacing the file replaces the token from the next
        request on. The new token is registered for redaction by then.
Rule 3: a trigger key that other users can read, or that is damaged, is not used: no trigger address
        works then, and the log says what to do. Replacing the file revokes every address at the
        next start.
"""

import hashlib
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holon.model.errors import BadInputError
from holon.model.limits import (
    CONTROL_TOKEN_BYTES,
    CONTROL_TOKEN_CHARS_MAX,
    CONTROL_TOKEN_CHARS_MIN,
    TRIGGER_KEY_CHARS_MIN,
)

_OTHERS: Final = 0o077
_RULE: Final = (
    f"{CONTROL_TOKEN_CHARS_MIN} to {CONTROL_TOKEN_CHARS_MAX} ASCII characters, without spaces"
)
FILE_NAME: Final = "trigger_key"


class BadTokenError(BadInputError):
    """The token, or the file it is in, cannot be used."""

    code = "bad_token"


def _nobody(token: str) -> None:
    """Ignore the secret."""


class FixedToken:
    """A token the operator named; it is in force for as long as the process runs."""

    def __init__(self, text: str) -> None:
        """Take a token; raises BadTokenError for one that no request can carry."""
        self._digest = _digest_of(text, subject="the token", repair=f"give {_RULE}")

    def digest(self) -> bytes | None:
        """SHA-256 of the token."""
        return self._digest


class TokenFile:
    """A token that lives in a file."""

    def __init__(self, path: Path, learn: Callable[[str], object] = _nobody) -> None:
        """`learn` is called with every token before it takes effect."""
        self._path = path
        self._learn = learn
        self._stamp: tuple[int, int, int] | None = None
        self._digest: bytes | None = None

    def make_if_missing(self) -> None:
        """Put a fresh token in place, unless there is one."""
        if os.path.lexists(self._path):
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        draft.unlink(missing_ok=True)  # left by one with our number that was killed
        handle = os.open(draft, flags, 0o600)
        try:
            import secrets  # here: few processes ever make a token, and all would load it

            os.write(handle, secrets.token_urlsafe(CONTROL_TOKEN_BYTES).encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, self._path)  # fails when another process was faster: its token stays
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)

    def require_usable(self, *, is_replaceable: bool = False) -> None:
        """Raise BadTokenError for an unusable token.

        One that is replaceable is made anew by the next start when it is gone.
        """
        repair = f"put {_RULE} there, readable by you alone"
        if is_replaceable:
            repair = f"remove the file, and the next start makes a new one; or put {_RULE} there"
        if not os.path.lexists(self._path):
            raise BadTokenError(f"there is no token file {self._path}", hint=repair)
        _digest_of(self.text(), subject=f"the token in {self._path}", repair=repair)

    def text(self) -> str:
        """The token itself, for a client of the same owner; raises BadTokenError."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise BadTokenError(
                f"cannot read the token file {self._path}: {error.strerror}",
                hint="start the server once: it makes the file",
            ) from None
        try:
            _require_private(os.fstat(handle), self._path)
            raw = os.read(handle, CONTROL_TOKEN_CHARS_MAX + 2)
        finally:
            os.close(handle)
        try:
            return raw.decode("ascii").strip()
        except UnicodeDecodeError:
            raise BadTokenError(
                f"{self._path} does not hold a token", hint=f"put {_RULE} there"
            ) from None

    def digest(self) -> bytes | None:
        """SHA-256 of the token in force, or nothing when the file is gone or unusable."""
        try:
            facts = os.stat(self._path, follow_symlinks=False)
            stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            if stamp != self._stamp:
                text = self.text()
                digest = _digest_of(text, subject=str(self._path), repair=_RULE)
                self._learn(text)
                self._stamp, self._digest = stamp, digest
        except (OSError, BadTokenError):
            self._stamp, self._digest = None, None
        return self._digest


def _digest_of(text: str, *, subject: str, repair: str) -> bytes:
    fits = CONTROL_TOKEN_CHARS_MIN <= len(text) <= CONTROL_TOKEN_CHARS_MAX
    if not fits or not text.isascii() or not text.isprintable() or " " in text:
        raise BadTokenError(f"{subject} cannot be used: it has {_fault(text)}", hint=repair)
    return hashlib.sha256(text.encode("ascii")).digest()


def _fault(text: str) -> str:
    """What is wrong with a token, without a character of it."""
    if CONTROL_TOKEN_CHARS_MIN <= len(text) <= CONTROL_TOKEN_CHARS_MAX:
        return "spaces, line breaks or characters outside ASCII"
    if len(text) > CONTROL_TOKEN_CHARS_MAX:
        return f"more than {CONTROL_TOKEN_CHARS_MAX} characters"
    return f"fewer than {CONTROL_TOKEN_CHARS_MIN} characters"


def _require_private(facts: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise BadTokenError(f"{path} is not a plain file", hint="move it away")
    if facts.st_mode & _OTHERS or facts.st_uid != os.getuid():
        raise BadTokenError(f"others can read the token file {path}", hint=f"run: chmod 600 {path}")


_log = logging.getLogger(__name__)


class TriggerKeyFile:
    """The key of one home. `learn` is called with every secret handed out."""

    def __init__(self, home: Path, learn: Callable[[str, str], bool]) -> None:
        self._path = home / FILE_NAME
        self._learn = learn
        self._key: bytes | None = None

    def key(self) -> bytes | None:
        """The key, or nothing when it cannot be used."""
        if self._key is None:
            self._key = self._read()
        return self._key

    def register_secret(self, name: str, secret: str) -> None:
        """Have the secret hidden wherever text is written down."""
        self._learn(name, secret)

    def _read(self) -> bytes | None:
        file = TokenFile(self._path)
        try:
            if not self._path.exists():
                file.make_if_missing()
            text = file.text()
        except BadTokenError as bad:
            _log.error("external triggers are shut: %s (%s)", bad.message, bad.hint)
            return None
        except OSError as error:
            _log.error("external triggers are shut: %s: %s", self._path, error.strerror)
            return None
        if len(text) < TRIGGER_KEY_CHARS_MIN:
            _log.error("external triggers are shut: %s does not hold a key", self._path)
            return None
        self._learn("trigger_key", text)
        return text.encode("ascii")
