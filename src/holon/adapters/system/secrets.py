"""The registry of secrets, and redaction.

Owns:  the values that must never be written down, and the matcher made of them.
Rule 1: code that obtains a secret (from a credential file, the environment, a login) registers it
        before using it.
Rule 2: a registered secret stays known under its newest name: a rotated key may still occur in an
        old error. Of a source that keeps issuing new ones (a program, the triggers) the newest
        SECRETS_PER_SOURCE_COUNT_MAX stay, since each costs time with every text.
Rule 3: readers take no lock. The matcher is replaced whole, so a thread sees the old one or the new
        one.
Rule 4: the address of a trigger is recognized by its form: it also works after a restart, when this
        process has not seen it yet.
"""

from threading import Lock

from holon.decide.text.secrets import Redacting, SecretMatcher
from holon.decide.wake.triggers import TRIGGER_SHAPE
from holon.model.limits import SECRET_CHARS_MIN, SECRETS_PER_SOURCE_COUNT_MAX


class SecretRegistry:
    """Knows every secret of the host, and keeps them out of text."""

    def __init__(self) -> None:
        self._names_by_value: dict[str, str] = {}  # oldest first
        self._learning = Lock()
        self._matcher = SecretMatcher((), shapes=(TRIGGER_SHAPE,))

    def learn(self, name: str, value: str) -> bool:
        """Remember a secret; false when the value is too short to be looked for."""
        value = value.strip()  # the newline at the end of a file is not part of the key
        if len(value) < SECRET_CHARS_MIN:
            return False
        with self._learning:
            is_known = self._names_by_value.pop(value, None) == name
            if not is_known:
                too_old = self._value_to_evict(_source_of(name))
                self._names_by_value.pop(too_old or "", None)
                self._matcher = self._matcher.knowing(name, value, instead_of=too_old)
            self._names_by_value[value] = name  # whatever was in use last is the newest
        return True

    def _value_to_evict(self, source: str) -> str | None:
        """Return the value that the next one of a source makes room for, where it must."""
        values = [v for v, name in self._names_by_value.items() if _source_of(name) == source]
        return values[0] if len(values) >= SECRETS_PER_SOURCE_COUNT_MAX else None

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        return self._matcher.redact(text)

    def stream(self) -> Redacting:
        """Return a fresh stream that hides what is known now, also across chunks."""
        return Redacting(self._matcher)


def _source_of(name: str) -> str:
    """Return what is before the colon of a name: the kind that all of its secrets come from."""
    return name.partition(":")[0]
