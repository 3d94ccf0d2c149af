"""Where the secret of a source of webhooks is looked up.

Owns:  the record. The secret itself is never in it.
"""

from holon.model.record import Record


class WebhookSetting(Record, frozen=True, kw_only=True):
    """The variable that holds a source's secret, or else the credential profile that does."""

    secret_env: str | None = None
    secret_profile: str | None = None
