"""Where the secrets of webhooks come from, and what a missing one means."""

from pathlib import Path

import pytest

from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import load_settings
from holon.model.limits import SECRETS_PER_SOURCE_COUNT_MAX
from holon.model.providers.models import CredentialKind, StoredCredential
from holon.serve.configured_host import secret_bytes, webhook_secrets

CONFIG = """
[webhooks.forge]
secret_env = "FORGE_SECRET"

[webhooks.mail]
secret_profile = "mail"
"""


def given(home: Path, environ: dict[str, str]) -> dict[str, bytes | None]:
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")
    return webhook_secrets(load_settings(home, {}), environ, SecretRegistry())


def test_a_secret_comes_from_its_variable_or_its_profile(tmp_path: Path) -> None:
    kept = StoredCredential(kind=CredentialKind.API_KEY, material="a-mail-secret")
    CredentialFile(tmp_path).put("mail", kept)
    found = given(tmp_path, {"FORGE_SECRET": "a-forge-secret"})
    assert found == {"forge": b"a-forge-secret", "mail": b"a-mail-secret"}


def test_the_secrets_of_however_many_sources_stay_hidden(tmp_path: Path) -> None:
    names = [f"SECRET_{number}" for number in range(2 * SECRETS_PER_SOURCE_COUNT_MAX)]
    tables = (f'[webhooks.s{at}]\nsecret_env = "{name}"\n' for at, name in enumerate(names))
    (tmp_path / "config.toml").write_text("".join(tables), encoding="utf-8")
    environ, registry = {name: f"the-value-of-{name}" for name in names}, SecretRegistry()
    webhook_secrets(load_settings(tmp_path, {}), environ, registry)
    assert [value for value in environ.values() if value in registry.redact(f"<{value}>")] == []


@pytest.mark.requirement("ingress:empty-secret-shuts")
@pytest.mark.parametrize("environ", [{}, {"FORGE_SECRET": ""}, {"FORGE_SECRET": " \n"}])
def test_a_source_whose_secret_is_missing_or_empty_is_there_and_shut(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    assert given(tmp_path, environ) == {"forge": None, "mail": None}


def test_credentials_others_can_read_are_not_used(tmp_path: Path) -> None:
    kept = StoredCredential(kind=CredentialKind.API_KEY, material="a-mail-secret")
    CredentialFile(tmp_path).put("mail", kept)
    (tmp_path / "credentials.json").chmod(0o644)
    assert given(tmp_path, {"FORGE_SECRET": "s"})["mail"] is None


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("plain", b"plain"),
        ("whsec_AQID", b"\x01\x02\x03"),
        ("whsec_", None),
        ("whsec_not base64!", None),
        ("", None),
    ],
)
def test_a_secret_may_be_spelled_as_webhook_senders_do(text: str, secret: bytes | None) -> None:
    assert secret_bytes(text) == secret
