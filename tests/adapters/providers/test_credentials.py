"""Where credentials come from, how they are sent, and what is said when they are missing."""

import json
import os
import select
import shlex
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holon.adapters.providers.catalog import ProviderRoute, provider_route
from holon.adapters.providers.credentials import Secret, credential_headers, register_stored_secrets
from holon.adapters.providers.external_credentials import secret_from, words_of
from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import load_settings
from holon.model.limits import CREDENTIAL_KEPT_MS_MAX
from holon.model.providers.attempts import AuthRejectedError, ModelUnavailableError, ProviderError
from holon.model.providers.models import (
    CredentialKind,
    CredentialSource,
    ProviderAuth,
    ProviderResolverSettings,
    ProviderSetting,
    StoredCredential,
    TransportKind,
)
from holon.serve.providers import build_plane
from tests.adapters.providers.resolver_parts import (
    SECRET,
    credentials_of,
    token_that_ends,
    write_login,
)
from tests.support.manual_clock import DAWN, ManualClock

PLAIN = ProviderResolverSettings()


def with_auth(provider: str, **words: object) -> ProviderRoute:
    auth = ProviderAuth(**words)  # type: ignore[arg-type]
    return provider_route(
        provider, ProviderResolverSettings(providers={provider: ProviderSetting(auth=auth)})
    )


def program(*lines: str) -> str:
    return shlex.join([sys.executable, "-S", "-c", "; ".join(lines)])


async def sent(home: Path, route: ProviderRoute, **environ: str) -> Mapping[str, str]:
    return await credentials_of(home, environ).bind(route).authorization.headers()


@pytest.mark.parametrize(
    ("transport", "kind", "name", "value"),
    [
        (TransportKind.OPENAI_RESPONSES, "api_key", "authorization", f"Bearer {SECRET}"),
        (TransportKind.OPENAI_CHAT_COMPLETIONS, "api_key", "authorization", f"Bearer {SECRET}"),
        (TransportKind.ANTHROPIC_MESSAGES, "api_key", "x-api-key", SECRET),
        (TransportKind.ANTHROPIC_MESSAGES, "bearer_token", "authorization", f"Bearer {SECRET}"),
        (TransportKind.ANTHROPIC_MESSAGES, "o_auth", "authorization", f"Bearer {SECRET}"),
    ],
)
def test_each_wire_gets_the_header_it_wants(
    transport: TransportKind, kind: str, name: str, value: str
) -> None:
    secret = Secret(value=SECRET, kind=CredentialKind(kind))
    assert credential_headers(transport, secret) == {name: value}
    assert SECRET not in repr(secret)


async def test_a_key_in_the_environment_is_sent_as_it_is_now(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "sk-first-key-000"}
    registry = SecretRegistry()
    bound = credentials_of(tmp_path, environ, registry=registry).bind(
        provider_route("openai", PLAIN)
    )
    assert bound.account == "openai:env:OPENAI_API_KEY"
    environ["OPENAI_API_KEY"] = f" {SECRET}\n"
    assert await bound.authorization.headers() == {"authorization": f"Bearer {SECRET}"}
    assert SECRET not in registry.redact(f"key={SECRET}")
    assert "sk-first-key-000" not in registry.redact("sk-first-key-000")
    del environ["OPENAI_API_KEY"]
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY is not set"):
        await bound.authorization.headers()


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({"ANTHROPIC_API_KEY": SECRET}, "x-api-key"),
        ({"ANTHROPIC_AUTH_TOKEN": SECRET}, "authorization"),
        ({"ANTHROPIC_AUTH_TOKEN": SECRET, "ANTHROPIC_API_KEY": "other-key-123"}, "authorization"),
        ({"ANTHROPIC_AUTH_TOKEN": "  ", "ANTHROPIC_API_KEY": SECRET}, "x-api-key"),
    ],
)
async def test_anthropic_takes_a_token_or_a_key(
    tmp_path: Path, environ: dict[str, str], header: str
) -> None:
    headers = await sent(tmp_path, provider_route("anthropic", PLAIN), **environ)
    assert list(headers) == [header]
    assert SECRET in headers[header]


@pytest.mark.parametrize(
    ("route", "words", "hint"),
    [
        (provider_route("openai", PLAIN), "OPENAI_API_KEY is not set", "set OPENAI_API_KEY, or"),
        (
            provider_route("anthropic", PLAIN),
            "ANTHROPIC_AUTH_TOKEN is not set",
            "set ANTHROPIC_AUTH_TOKEN or ANTHROPIC_API_KEY, or run `holon config credentials set "
            "anthropic --kind api_key --stdin`",
        ),
        (provider_route("openai-codex", PLAIN), "there is no login at", "codex login"),
        (with_auth("openai", source=CredentialSource.ENV, env="MINE"), "MINE is not", "set MINE"),
        (with_auth("openai", source=CredentialSource.ENV), "no variable", "--credential-env"),
        (
            with_auth("openai", source=CredentialSource.PROFILE, profile="work"),
            "no credential profile 'work'",
            "holon config credentials set work",
        ),
        (
            with_auth("openai", source=CredentialSource.PROCESS, external="no-such-program-x"),
            "'no-such-program-x' cannot be found",
            "--credential-external",
        ),
        (
            with_auth("openai", source=CredentialSource.PROCESS, external="a 'b"),
            "quotes do not match",
            "--credential-external",
        ),
        (
            with_auth("openai", source=CredentialSource.EXTERNAL_CLI, external="otherctl"),
            "no login is known of a program called 'otherctl'",
            "absolute path",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(
    tmp_path: Path, route: ProviderRoute, words: str, hint: str
) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        credentials_of(tmp_path).bind(route)
    assert words in caught.value.message
    assert hint in str(caught.value.hint)


async def test_a_profile_with_the_providers_name_needs_no_configuration(tmp_path: Path) -> None:
    stored = StoredCredential(kind=CredentialKind.BEARER_TOKEN, material=SECRET)
    CredentialFile(tmp_path).put("anthropic", stored)
    route = provider_route("anthropic", PLAIN)
    assert await sent(tmp_path, route) == {"authorization": f"Bearer {SECRET}"}
    # The environment is nearer than the file.
    assert await sent(tmp_path, route, ANTHROPIC_API_KEY="nearer-key-1") == {
        "x-api-key": "nearer-key-1"
    }


async def test_a_credentials_file_others_can_read_is_not_used(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    file.put("openai", StoredCredential(kind=CredentialKind.API_KEY, material=SECRET))
    bound = credentials_of(tmp_path).bind(provider_route("openai", PLAIN))
    file.path.chmod(0o644)
    with pytest.raises(ModelUnavailableError, match="read by others") as caught:
        await bound.authorization.headers()
    assert "chmod 600" in str(caught.value.hint)
    with pytest.raises(ModelUnavailableError, match="read by others"):
        credentials_of(tmp_path).bind(provider_route("openai", PLAIN))


@pytest.mark.parametrize("spoilt", ["two words", "line\nbreak-key", "smart “quotes”", "x" * 70_000])
def test_a_secret_no_header_could_carry_is_refused_unquoted(tmp_path: Path, spoilt: str) -> None:
    environ = {"OPENAI_API_KEY": spoilt}
    with pytest.raises(AuthRejectedError) as caught:
        credentials_of(tmp_path, environ).bind(provider_route("openai", PLAIN))
    assert spoilt not in caught.value.message
    assert "OPENAI_API_KEY" in caught.value.message


async def test_servers_of_ones_own_are_asked_without_a_credential_unless_there_is_one(
    tmp_path: Path,
) -> None:
    assert await sent(tmp_path, provider_route("ollama", PLAIN)) == {}
    assert await sent(tmp_path, provider_route("litellm", PLAIN)) == {}
    assert await sent(tmp_path, provider_route("litellm", PLAIN), LITELLM_API_KEY=SECRET)
    none = with_auth("openai", source=CredentialSource.NONE)
    assert await sent(tmp_path, none, OPENAI_API_KEY=SECRET) == {}


async def test_the_codex_login_gives_token_and_account(tmp_path: Path) -> None:
    token = token_that_ends(DAWN + timedelta(days=1), account="acc-from-token")
    write_login(tmp_path / ".codex" / "auth.json", access_token=token)
    route = provider_route("openai-codex", PLAIN)
    assert await sent(tmp_path, route) == {
        "authorization": f"Bearer {token}",
        "chatgpt-account-id": "acc-from-token",
    }
    write_login(tmp_path / "else" / "auth.json", access_token=token, account_id="acc-1")
    headers = await sent(tmp_path, route, CODEX_HOME=str(tmp_path / "else"))
    assert headers["chatgpt-account-id"] == "acc-1"
    elsewhere = with_auth(
        "openai-codex",
        source=CredentialSource.EXTERNAL_CLI,
        kind=CredentialKind.OAUTH,
        external="~/else/auth.json",
    )
    assert (await sent(tmp_path, elsewhere))["chatgpt-account-id"] == "acc-1"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"tokens": {"access_token": 5}}', "is damaged"),
        ("\xff not json sk-half-a-secret", "is damaged"),
        ("{}", "no login found"),
        ('{"tokens": {"access_token": ""}}', "no login found"),
    ],
)
def test_a_spoilt_login_asks_for_a_new_one(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / ".codex" / "auth.json"
    path.parent.mkdir()
    path.write_text(content, encoding="latin-1")
    with pytest.raises(AuthRejectedError, match=words) as caught:
        credentials_of(tmp_path).bind(provider_route("openai-codex", PLAIN))
    assert "codex login" in str(caught.value.hint)
    assert "half-a-secret" not in caught.value.message


async def test_a_login_that_ends_meanwhile_is_noticed(tmp_path: Path) -> None:
    token = token_that_ends(DAWN + timedelta(minutes=1))
    write_login(tmp_path / ".codex" / "auth.json", access_token=token)
    clock = ManualClock()
    bound = credentials_of(tmp_path, clock=clock).bind(provider_route("openai-codex", PLAIN))
    assert await bound.authorization.headers() == {"authorization": f"Bearer {token}"}
    clock.advance(60_000)
    with pytest.raises(AuthRejectedError, match="ended 2026-01-01T00:01:00") as caught:
        await bound.authorization.headers()
    assert "codex login" in str(caught.value.hint)


async def test_a_program_is_asked_once_in_a_while(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    command = program(
        f"open({str(asked)!r}, 'a').write('x')",
        f"print({SECRET!r} + str(len(open({str(asked)!r}).read())))",
    )
    route = with_auth(
        "openai", source=CredentialSource.PROCESS, kind=CredentialKind.API_KEY, external=command
    )
    clock, registry = ManualClock(), SecretRegistry()
    bound = credentials_of(tmp_path, clock=clock, registry=registry).bind(route)
    assert not asked.exists()  # looking starts nothing
    assert bound.account.startswith("openai:credential_process:")
    assert SECRET not in bound.account
    assert await bound.authorization.headers() == {"authorization": f"Bearer {SECRET}1"}
    assert await bound.authorization.headers() == {"authorization": f"Bearer {SECRET}1"}
    clock.advance(CREDENTIAL_KEPT_MS_MAX)
    assert await bound.authorization.headers() == {"authorization": f"Bearer {SECRET}2"}
    assert SECRET not in registry.redact(f"{SECRET}2")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["import sys", f"print({SECRET!r})", "sys.exit(3)"], "ended with status 3"),
        (["print('x' * 100000)"], "printed more than a secret"),
        (["pass"], "empty"),
        ([f"print({SECRET!r}, 'and more')"], "not one word"),
    ],
)
async def test_a_program_that_fails_is_refused_without_its_words(
    tmp_path: Path, lines: list[str], words: str
) -> None:
    route = with_auth("openai", source=CredentialSource.PROCESS, external=program(*lines))
    bound = credentials_of(tmp_path).bind(route)
    with pytest.raises(AuthRejectedError, match=words) as caught:
        await bound.authorization.headers()
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"


async def test_a_program_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(AuthRejectedError, match="printed nothing within 50 ms"):
        await secret_from(words_of(program("import time", "time.sleep(600)")), {}, wait_ms=50)


async def test_a_program_nobody_waits_for_is_ended_with_its_children(tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    command = program(
        "import os, time",
        "child = os.fork()",
        f"child and open({str(told)!r}, 'w').write(f'{{os.getpid()}} {{child}}')",
        "time.sleep(600)",
    )
    async with anyio.create_task_group() as asking:
        asking.start_soon(secret_from, words_of(command), {})
        pids = await anyio.to_thread.run_sync(told.read_text, "ascii")
        asking.cancel_scope.cancel()
    assert [ended(int(pid)) for pid in pids.split()] == [True, True]


def ended(pid: int) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 30)[0])
    finally:
        os.close(handle)


async def test_a_command_is_never_given_to_a_shell(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    said = await secret_from(words_of(f"echo $(touch {mark}) ; true"), {})
    assert said == f"$(touch {mark}) ; true"
    assert not mark.exists()


async def test_a_program_that_cannot_be_started_is_a_provider_error(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="cannot be started"):
        await secret_from([str(tmp_path)], {})


def test_a_state_names_the_credential_and_not_its_value(tmp_path: Path) -> None:
    credentials = credentials_of(tmp_path, {"OPENAI_API_KEY": SECRET})
    state = credentials.chosen(provider_route("openai", PLAIN))
    assert (state.source, state.name, state.is_present) == ("env", "OPENAI_API_KEY", True)
    assert SECRET not in repr(state)
    missing = credentials.chosen(provider_route("anthropic", PLAIN))
    assert (missing.name, missing.is_present) == ("ANTHROPIC_AUTH_TOKEN", False)


def test_what_is_kept_and_not_used_is_hidden_as_well(tmp_path: Path) -> None:
    registry = SecretRegistry()
    file = CredentialFile(tmp_path)
    login = {"tokens": {"access_token": f"a-{SECRET}", "refresh_token": f"r-{SECRET}"}, "id": "me"}
    stored = {
        "work": StoredCredential(kind=CredentialKind.API_KEY, material=f"w-{SECRET}"),
        "codex": StoredCredential(kind=CredentialKind.OAUTH, material=json.dumps(login)),
    }
    for name, each in stored.items():
        file.put(name, each)
    named = {"OTHER_API_KEY": "o", "MINE": "m", "HF_TOKEN": "h", "EDITOR": "e"}
    environ = {name: f"{first}-{SECRET}" for name, first in named.items()}
    register_stored_secrets(registry, environ, file.profiles, variables={"MINE"})
    hidden = [first for first in "arwomhe" if SECRET not in registry.redact(f"({first}-{SECRET})")]
    assert hidden == list("arwomh")


def test_a_credential_that_is_nested_without_end_is_hidden_as_a_whole(tmp_path: Path) -> None:
    file, registry = CredentialFile(tmp_path), SecretRegistry()
    deep = "[" * 5_000
    file.put("work", StoredCredential(kind=CredentialKind.API_KEY, material=deep))
    register_stored_secrets(registry, {}, file.profiles, variables=())
    assert registry.redact(f"x{deep}x") == "x[secret:credential profile work]x"


async def test_a_host_hides_what_its_settings_name_and_what_is_stored(tmp_path: Path) -> None:
    server = 'transport = "openai_chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
    auth = 'auth.source = "env"\nauth.kind = "api_key"\nauth.env = "MINE"\n'
    (tmp_path / "config.toml").write_text(f"[providers.box]\n{server}{auth}", encoding="utf-8")
    kept = StoredCredential(kind=CredentialKind.API_KEY, material=f"w-{SECRET}")
    CredentialFile(tmp_path).put("work", kept)
    environ, registry = {"MINE": f"m-{SECRET}"}, SecretRegistry()
    plane = build_plane(load_settings(tmp_path, environ), environ, registry, ManualClock())
    await plane.aclose()
    assert [first for first in "mw" if SECRET in registry.redact(f"({first}-{SECRET})")] == []


def test_credentials_that_cannot_be_read_keep_nobody_from_hiding_the_rest(tmp_path: Path) -> None:
    file, registry = CredentialFile(tmp_path), SecretRegistry()
    file.put("work", StoredCredential(kind=CredentialKind.API_KEY, material=f"w-{SECRET}"))
    (tmp_path / "credentials.json").write_text("{", encoding="utf-8")
    register_stored_secrets(registry, {"A_API_KEY": f"a-{SECRET}"}, file.profiles, variables=())
    assert SECRET not in registry.redact(f"(a-{SECRET})")
