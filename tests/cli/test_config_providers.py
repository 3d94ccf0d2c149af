"""`holon config providers set`, `get`, `list` and `remove`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.config.load_settings import load_settings
from holon.model.providers.models import (
    CredentialKind,
    CredentialSource,
    ProviderAuth,
    ProviderSetting,
    TransportKind,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner(env={"HOLON_HOME": str(home), **(env or {})}).invoke(
        main, ["config", "providers", *arguments]
    )


BOX = (
    "set", "box",
    "--transport", "openai_chat_completions",
    "--base-url", "http://127.0.0.1:8000/v1/",
    "--credential-source", "env",
    "--credential-kind", "bearer_token",
    "--credential-env", "BOX_KEY",
)  # fmt: skip


def test_a_provider_is_described_shown_and_forgotten(home: Path) -> None:
    done = run(home, *BOX)
    assert done.exit_code == exit_codes.OK, done.output
    assert "providers.box.base_url = http://127.0.0.1:8000/v1\n" in done.stdout
    assert load_settings(home, {}).plane.providers == {
        "box": ProviderSetting(
            transport="openai_chat_completions",
            base_url="http://127.0.0.1:8000/v1",
            auth=ProviderAuth(
                source=CredentialSource.ENV, kind=CredentialKind.BEARER_TOKEN, env="BOX_KEY"
            ),
        )
    }
    shown = json.loads(run(home, "get", "box", "--json").stdout)
    assert shown["builtin"] is False
    assert shown["settings"]["auth.env"]["value"] == "BOX_KEY"
    assert "providers.box.auth.env = BOX_KEY  (" in run(home, "get", "box").stdout
    rows = json.loads(run(home, "list", "--json").stdout)["providers"]
    assert {"id": "box", "builtin": False, "configured": True} in rows
    assert {"id": "openai", "builtin": True, "configured": False} in rows
    assert "box  (configured)" in run(home, "list").stdout
    assert json.loads(run(home, "remove", "box", "--json").stdout)["removed"] is True
    assert load_settings(home, {}).plane.providers == {}
    assert run(home, "remove", "box").exit_code == exit_codes.UNUSABLE


def test_only_what_is_given_changes(home: Path) -> None:
    run(home, *BOX)
    done = run(home, "set", "box", "--base-url", "http://other", "--json")
    assert json.loads(done.stdout) == {
        "id": "box",
        "set": {"providers.box.base_url": "http://other"},
    }
    box = load_settings(home, {}).plane.providers["box"]
    assert (box.base_url, box.transport) == ("http://other", "openai_chat_completions")


def test_a_provider_that_only_the_environment_knows_is_listed(home: Path) -> None:
    env = {"HOLON_BOX_BASE_URL": "http://127.0.0.1:1"}
    assert "box  (configured)" in run(home, "list", env=env).stdout
    assert "($HOLON_BOX_BASE_URL)" in run(home, "get", "box", env=env).stdout


def test_a_built_in_provider_needs_no_configuration(home: Path) -> None:
    done = run(home, "get", "openai")
    assert done.exit_code == exit_codes.OK
    assert done.stdout == "openai is built in; nothing is configured for it\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("set", "box"), "at least one setting"),
        (("set", "opnai", "--credential-env", "K"), "did you mean openai?"),
        (("set", "box", "--transport", "openai_responses"), "give --base-url"),
        (("set", "Box", "--base-url", "http://x"), "cannot be the id of a provider"),
        (("set", 'a"b', "--base-url", "http://x"), "cannot be the id of a provider"),
        (("set", "box", "--base-url", "box:80"), "providers.box.base_url: expected an http://"),
        (("set", "box", "--base-url", "http://x", "--transport", "http"), "(from --transport)"),
        (("set", "openai", "--credential-kind", "apikey"), "did you mean api_key?"),
        (("set", "openai", "--credential-source", "env"), "needs --credential-env"),
        (("set", "openai", "--credential-source", "auth_profile"), "needs --credential-profile"),
        (
            ("set", "openai", "--credential-source", "credential_process"),
            "needs --credential-external",
        ),
        (("get", "opnai"), "did you mean openai?"),
        (("remove", "openai"), "'openai' is not configured"),
    ],
)
def test_what_could_never_be_used_is_refused_and_nothing_changes(
    arguments: tuple[str, ...], words: str, home: Path
) -> None:
    done = run(home, *arguments)
    assert done.exit_code == exit_codes.UNUSABLE
    assert words in done.stderr
    assert done.stdout == ""
    assert not home.exists()


def test_a_key_given_for_a_name_is_not_repeated(home: Path) -> None:
    done = run(home, "set", "openai", "--credential-env", "sk-secret-0123")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "sk-secret" not in done.output


def test_help_names_every_wire_source_and_kind(home: Path) -> None:
    text = " ".join(run(home, "set", "--help").stdout.split())
    wires = [kind for kind in TransportKind if kind not in ("scripted", "local")]
    for word in (*wires, *CredentialSource, *CredentialKind):
        assert word in text
