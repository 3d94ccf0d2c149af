"""The one registry of secrets a host holds.

Owns:  which values must never be written down, and the matcher made of them.
Rule 1: whoever comes to hold a secret (a credential file, the environment, a login) teaches it to
        the registry before using it.
Rule 2: a secret once learned stays known under its newest name until the process ends: a rotated
        key may still turn up in an old error.
Rule 3: readers take no lock. The matcher is replaced whole, so any thread sees the old one or the
        new one, never half of it.
"""

from threading import Lock

from holon.decide.redaction import Redacting, SecretMatcher
from holon.model.limits import SECRET_CHARS_MIN


class SecretRegistry:
    """Knows every secret of the host, and keeps them out of text."""

    def __init__(self) -> None:
        self._names_by_value: dict[str, str] = {}
        self._learning = Lock()
        self._matcher = SecretMatcher(())

    def learn(self, name: str, value: str) -> bool:
        """Remember a secret; false when the value is too short to be looked for."""
        value = value.strip()  # the newline at the end of a file is not part of the key
        if len(value) < SECRET_CHARS_MIN:
            return False
        with self._learning:
            if self._names_by_value.get(value) != name:
                self._names_by_value[value] = name
                self._matcher = self._matcher.knowing(name, value)
        return True

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        return self._matcher.redact(text)

    def stream(self) -> Redacting:
        """Return a fresh stream that hides what is known now, also across chunks."""
        return Redacting(self._matcher)
