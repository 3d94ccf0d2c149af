"""Keeping secrets out of what is written down.

Contract: `redact` replaces every known secret in a text, in any of the forms it is likely to take
(raw, URL-encoded, base64, hexadecimal, JSON-escaped), by a mark that names the secret and not its
value; a text without a secret comes back unchanged. Half a secret is not found: redact, then cut.
"""

from typing import Protocol


class Redactor(Protocol):
    """Something that knows every secret of the host."""

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        ...


class NothingToRedact:
    """For a host that holds no secrets."""

    def redact(self, text: str) -> str:
        """Return the text as it is."""
        return text
