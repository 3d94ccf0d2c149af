"""A plane with everything around it in a test's hands."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from holon.adapters.providers.credentials import Credentials
from holon.adapters.providers.resolver import ProviderResolver, ResolverParts
from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.model.providers.models import ProviderResolverSettings
from tests.support.manual_clock import ManualClock

SECRET = "sk-plainly-secret-0123456789"


def credentials_of(
    home: Path,
    environ: Mapping[str, str] | None = None,
    *,
    registry: SecretRegistry | None = None,
    clock: ManualClock | None = None,
) -> Credentials:
    return Credentials(
        environ=environ or {},
        profiles=CredentialFile(home).profiles,
        registry=registry or SecretRegistry(),
        clock=clock or ManualClock(),
        user_home=home,
    )


def resolver_of(
    home: Path,
    settings: ProviderResolverSettings | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    has_local: bool = False,
) -> ProviderResolver:
    parts = ResolverParts(
        credentials=credentials_of(home, environ),
        clock=ManualClock(),
        home=home,
        redactor=SecretRegistry(),
        has_local=lambda: has_local,
    )
    return ProviderResolver(settings or ProviderResolverSettings(), parts)


def token_that_ends(moment: datetime, account: str | None = None) -> str:
    """A token that says of itself when it ends and whose it is."""
    claims: dict[str, object] = {"exp": int(moment.timestamp())}
    if account is not None:
        claims["https://api.openai.com/auth"] = {"chatgpt_account_id": account}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.c2lnbmF0dXJl"


def write_login(path: Path, **tokens: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"OPENAI_API_KEY": None, "tokens": tokens}), encoding="utf-8")
