"""The server key from which addresses of external triggers are derived.

Contract: the key is the same for as long as a home exists, and is not in the database. Without a
key no address exists and none verifies.
"""

from typing import Protocol


class TriggerKey(Protocol):
    """The server's key."""

    def key(self) -> bytes | None:
        """The key, or None when it cannot be used; the journal says why."""
        ...

    def register_secret(self, name: str, secret: str) -> None:
        """Register a secret that is about to be shown, so that it is redacted elsewhere."""
        ...


class NoTriggerKey:
    """No trigger has an address."""

    def key(self) -> bytes | None:
        """No key exists."""
        return None

    def register_secret(self, name: str, secret: str) -> None:
        """Nothing is ever handed out."""
