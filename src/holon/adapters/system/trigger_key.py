"""The key of external triggers, in a file of its own.

Owns:  `<home>/trigger_key`, mode 0600, made when it is first needed.
Rule 1: a key that others can read, or that is damaged, is not used: no address opens then, and the
        log says what to do. Whoever replaces the file voids every address at the next start.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holon.adapters.system.control_token import BadTokenError, TokenFile
from holon.model.limits import TRIGGER_KEY_CHARS_MIN

FILE_NAME: Final = "trigger_key"
_log = logging.getLogger(__name__)


class TriggerKeyFile:
    """The key of one home. `learn` is told of every secret that is shown."""

    def __init__(self, home: Path, learn: Callable[[str, str], bool]) -> None:
        self._path = home / FILE_NAME
        self._learn = learn
        self._key: bytes | None = None

    def key(self) -> bytes | None:
        """The key, or nothing when it cannot be used."""
        if self._key is None:
            self._key = self._read()
        return self._key

    def handed_out(self, name: str, secret: str) -> None:
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
