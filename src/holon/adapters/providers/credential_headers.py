"""A secret in hand, and the headers each wire wants it in.

Owns:  the record of a secret, which never shows its value, and how it is put on a request.
"""

from collections.abc import Mapping

import msgspec

from holon.model.provider_setting import CredentialKind, TransportKind


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A credential in hand, for as long as it takes to write a header."""

    value: str
    kind: CredentialKind
    account_id: str | None = None

    def __repr__(self) -> str:
        return f"Secret(kind={self.kind.value!r}, value=<secret>)"


def credential_headers(transport: TransportKind, secret: Secret) -> Mapping[str, str]:
    """Return the headers that carry a secret on a wire."""
    if transport is TransportKind.ANTHROPIC_MESSAGES and secret.kind is CredentialKind.API_KEY:
        return {"x-api-key": secret.value}
    headers = {"authorization": f"Bearer {secret.value}"}
    if transport is TransportKind.OPENAI_CODEX_RESPONSES and secret.account_id:
        headers["chatgpt-account-id"] = secret.account_id
    return headers
