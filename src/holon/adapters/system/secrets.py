"""The one registry of secrets a host holds.

Owns:  which values must never be written down, and the matcher made of them.
Rule 1: whoever comes to hold a secret (a credential file, the environment, a login) teaches it to
        the registry before using it.
Rule 2: a secret once learned stays known under its newest name: a rotated key may still turn up in
        an old error. Of one source that hands out ever new ones (a program, the triggers) the
        newest SECRETS_PER_SOURCE_COUNT_MAX stay, since each costs time with every text.
Rule 3: readers take no lock. The matcher is replaced whole, so any thread sees the old one or the
        new one, never half of it.
Rule 4: the address of a trigger is known by its look: it opens also after a restart, when nobody
        has shown it to this process.
"""

import re
from threading import Lock
from typing import Final

from holon.decide.redaction import Redacting, SecretMatcher, SecretShape
from holon.model.ids import IdPrefix
from holon.model.limits import (
    ID_CHARS_MAX,
    SECRET_CHARS_MIN,
    SECRETS_PER_SOURCE_COUNT_MAX,
    TRIGGER_SECRET_CHARS,
)

_TRIGGER_MARK: Final = f"{IdPrefix.TRIGGER.value}_"
_TRIGGER: Final = SecretShape(
    name="trigger",
    looks_like=re.compile(
        rf"{_TRIGGER_MARK}[a-z0-9]{{1,{ID_CHARS_MAX}}}\.[A-Za-z0-9_-]{{{TRIGGER_SECRET_CHARS}}}"
    ),
    mark=_TRIGGER_MARK,
    chars_max=len(_TRIGGER_MARK) + ID_CHARS_MAX + 1 + TRIGGER_SECRET_CHARS,
)


class SecretRegistry:
    """Knows every secret of the host, and keeps them out of text."""

    def __init__(self) -> None:
        self._names_by_value: dict[str, str] = {}  # oldest first
        self._learning = Lock()
        self._matcher = SecretMatcher((), shapes=(_TRIGGER,))

    def learn(self, name: str, value: str) -> bool:
        """Remember a secret; false when the value is too short to be looked for."""
        value = value.strip()  # the newline at the end of a file is not part of the key
        if len(value) < SECRET_CHARS_MIN:
            return False
        with self._learning:
            is_known = self._names_by_value.pop(value, None) == name
            if not is_known:
                too_old = self._oldest_of_too_many(_source_of(name))
                self._names_by_value.pop(too_old or "", None)
                self._matcher = self._matcher.knowing(name, value, instead_of=too_old)
            self._names_by_value[value] = name  # whatever was in use last is the newest
        return True

    def _oldest_of_too_many(self, source: str) -> str | None:
        """Return the value that the next one of a source makes room for, where it must."""
        known = [v for v, name in self._names_by_value.items() if _source_of(name) == source]
        return known[0] if len(known) >= SECRETS_PER_SOURCE_COUNT_MAX else None

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        return self._matcher.redact(text)

    def stream(self) -> Redacting:
        """Return a fresh stream that hides what is known now, also across chunks."""
        return Redacting(self._matcher)


def _source_of(name: str) -> str:
    """Return what is before the colon of a name: the kind that all of its secrets come from."""
    return name.partition(":")[0]
