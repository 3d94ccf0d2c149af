"""What the flags and variables about access amount to."""

from pathlib import Path
from typing import Unpack

import click
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from holon.cli.service.access_options import AccessFlags, access_options, serve_request
from holon.config.environment_names import CALLBACK_BASE_URL
from holon.ports.journal import LogLevel
from holon.serve.access_plan import AccessMode, plan_access
from holon.serve.effective_config import RecordedOptions, ServeRequest, recorded_options

FLAGS = AccessFlags(
    access="local",
    listen=None,
    host=None,
    port=None,
    advertise="https://holon.example.org",
    token=None,
    token_file=None,
    workspace_root=None,
    agent="main",
    log_level=None,
)


def asked() -> ServeRequest:
    return serve_request(FLAGS)


@pytest.mark.requirement("triggers:callback-base")
@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("", None), ("https://hooks.example.org", "https://hooks.example.org")],
)
def test_the_base_of_trigger_urls_is_a_variable_beside_the_advertised_address(
    monkeypatch: pytest.MonkeyPatch, value: str | None, expected: str | None
) -> None:
    monkeypatch.delenv(CALLBACK_BASE_URL, raising=False)
    if value is not None:
        monkeypatch.setenv(CALLBACK_BASE_URL, value)
    access = asked().access
    assert (access.callback_base, access.advertise) == (expected, "https://holon.example.org")


KNOWN = RecordedOptions(
    access=AccessMode.LAN,
    host="192.168.1.20",
    port=9000,
    agent="builder",
    token_file="/t/token",
    log_level=LogLevel.DEBUG,
)
SILENT: AccessFlags = {**FLAGS, "access": None, "agent": None, "advertise": None}


def test_what_is_left_open_is_as_it_was_before() -> None:
    assert recorded_options(serve_request(SILENT, KNOWN)) == KNOWN
    changed = recorded_options(serve_request({**SILENT, "port": 9001, "agent": "main"}, KNOWN))
    assert changed == replace(KNOWN, port=9001, agent="main")
    moved = recorded_options(serve_request({**SILENT, "listen": "10.0.0.7:80"}, KNOWN))
    assert moved == replace(KNOWN, host="10.0.0.7", port=80), "a whole address replaces a whole one"


def test_one_way_to_give_a_token_replaces_the_other() -> None:
    token = "a-token-of-the-operators-own-choice"
    by_value = serve_request({**SILENT, "token": token}, KNOWN)
    assert (by_value.token, by_value.token_file) == (token, None)
    named = recorded_options(by_value)
    assert (named.has_token, named.token_file) == (True, None)
    by_file = serve_request({**SILENT, "token_file": Path("/t/other")}, named)
    assert (by_file.token, by_file.token_file) == (None, Path("/t/other"))
    assert not by_file.has_token_by_value


def asked_by(arguments: list[str], variables: dict[str, str]) -> ServeRequest:
    seen: list[ServeRequest] = []

    @click.command()
    @access_options
    def command(**flags: Unpack[AccessFlags]) -> None:
        seen.append(serve_request(flags))

    told = CliRunner().invoke(command, arguments, env=variables)
    assert told.exit_code == 0, told.output
    return seen[0]


def test_a_file_that_is_named_is_stronger_than_a_variable() -> None:
    asked = asked_by(["--token-file", "/t/token"], {"HOLON_CONTROL_TOKEN": "of-the-environment"})
    assert (asked.token, asked.token_file) == (None, Path("/t/token"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ("127.0.0.1", 7900)),
        (["--port", "8080"], ("127.0.0.1", 8080)),
        (["--host", "::1"], ("::1", 7900)),
        (["--host", "::1", "--port", "0"], ("::1", 0)),
        (["--listen", "127.0.0.2:1"], ("127.0.0.2", 1)),
    ],
)
def test_an_option_outdoes_the_variable_that_says_where_to_listen(
    arguments: list[str], expected: tuple[str, int]
) -> None:
    asked = asked_by(arguments, {"HOLON_HTTP_ADDR": "127.0.0.1:7900"})
    plan = plan_access(asked.access)
    assert (plan.host, plan.port) == expected


@pytest.mark.requirement("own-commands:token-among-arguments-is-warned-of")
@pytest.mark.parametrize(
    ("arguments", "variables", "is_warned"),
    [
        (["--token", "a-token-of-my-own"], {}, True),
        (["--token-file", "/t/token"], {}, False),
        ([], {"HOLON_CONTROL_TOKEN": "a-token-of-my-own"}, False),
        ([], {}, False),
    ],
)
def test_a_token_among_the_arguments_is_warned_of(
    arguments: list[str], variables: dict[str, str], is_warned: bool
) -> None:
    @click.command()
    @access_options
    def command(**flags: Unpack[AccessFlags]) -> None:
        serve_request(flags)

    told = CliRunner().invoke(command, arguments, env=variables)
    assert ("process list" in told.stderr) is is_warned
    assert "a-token-of-my-own" not in told.stderr
