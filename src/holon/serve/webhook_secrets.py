"""The secrets webhooks are signed with, as a server holds them.

Owns:  looking each one up where the settings say, once, at the start.
Rule 1: a source whose secret is missing, empty or unreadable is shut; it is never left open.
"""

import binascii
import logging
from base64 import b64decode
from collections.abc import Mapping
from typing import Final

from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings
from holon.model.errors import HolonError
from holon.model.webhook_setting import WebhookSetting

_PREFIX: Final = "whsec_"  # as Standard Webhooks spells secrets: base64 follows
_log = logging.getLogger(__name__)


def webhook_secrets(
    settings: Settings, environ: Mapping[str, str], registry: SecretRegistry
) -> dict[str, bytes | None]:
    """Return the secret of each source that is set up; nothing for one that has none."""
    found: dict[str, bytes | None] = {}
    for source, setting in settings.webhooks.items():
        text = _text_of(setting, settings, environ)
        registry.learn(f"webhook {source}", text)  # each is a source of its own
        found[source] = secret_bytes(text)
        if found[source] is None:
            _log.warning("webhooks of %s are shut: their secret is missing", source)
    return found


def secret_bytes(text: str) -> bytes | None:
    """Return the key a secret stands for, or nothing when it stands for none."""
    plain = text.strip()
    if not plain.startswith(_PREFIX):
        return plain.encode() or None
    try:
        return b64decode(plain.removeprefix(_PREFIX), validate=True) or None
    except binascii.Error:
        return None


def _text_of(setting: WebhookSetting, settings: Settings, environ: Mapping[str, str]) -> str:
    if setting.secret_env is not None:
        return environ.get(setting.secret_env, "")
    if setting.secret_profile is None:
        return ""
    try:
        kept = CredentialFile(settings.home).profiles().get(setting.secret_profile)
    except HolonError as error:
        _log.warning("%s (%s)", error.message, error.hint)
        return ""
    return "" if kept is None else kept.material
