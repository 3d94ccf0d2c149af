"""Where the secret of a source of webhooks is looked up, and how it signs.

Owns:  the record. The secret itself is never in it.
"""

from enum import StrEnum

from holon.model.record import Record


class SignatureForm(StrEnum):
    """How a source signs what it sends."""

    STANDARD = "standard"  # Standard Webhooks: id, moment and body
    GITHUB = "github"  # X-Hub-Signature-256: the body alone


class WebhookSetting(Record, frozen=True, kw_only=True):
    """The variable that holds a source's secret, or else the credential profile that does."""

    secret_env: str | None = None
    secret_profile: str | None = None
    signature: SignatureForm = SignatureForm.STANDARD
