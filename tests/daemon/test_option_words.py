"""The command that replaces a service names what is to be other, and no token."""

from pathlib import Path

import pytest

from holon.daemon.options import replacing_command
from holon.model.values import AgentId
from holon.serve.access_plan import AccessMode, AccessRequest
from holon.serve.effective_config import (
    RecordedOptions,
    ServeRequest,
    read_options,
    recorded_options,
)

MAIN = AgentId("main")
PLAIN = ServeRequest(access=AccessRequest(), default_agent=MAIN)
ELSEWHERE = ServeRequest(access=AccessRequest(listen="127.0.0.1:9000"), default_agent=MAIN)
NAMED = ServeRequest(
    access=AccessRequest(has_own_token=True), token="a-secret-nobody-prints", default_agent=MAIN
)
OPEN = ServeRequest(
    access=AccessRequest(mode=AccessMode.LAN, host="192.168.1.20", has_own_token=True),
    token_file=Path("/a folder/token"),
    default_agent=MAIN,
)


@pytest.mark.parametrize(
    ("asked", "running", "command"),
    [
        (PLAIN, PLAIN, "holon daemon restart"),
        (PLAIN, None, "holon daemon restart"),
        (ELSEWHERE, PLAIN, "holon daemon restart --port 9000"),
        (PLAIN, ELSEWHERE, "holon daemon restart --port 7878"),
        (NAMED, NAMED, "holon daemon restart --token TOKEN"),
        (
            OPEN,
            PLAIN,
            "holon daemon restart --access lan --host 192.168.1.20 --token-file '/a folder/token'",
        ),
        (ELSEWHERE, OPEN, "holon daemon restart --defaults --port 9000"),
    ],
)
def test_the_command_names_what_differs(
    asked: ServeRequest, running: ServeRequest | None, command: str
) -> None:
    known = None if running is None else recorded_options(running)
    assert replacing_command(asked, known) == command


@pytest.mark.parametrize("written", [None, 1, [], {}, {"access": "lan"}, {"port": "x"}])
def test_options_of_another_version_that_cannot_be_read_count_as_not_written_down(
    written: object,
) -> None:
    assert read_options(written) is None


def test_options_that_say_more_than_we_know_are_read() -> None:
    written = {"access": "local", "host": "::1", "port": 1, "agent": "main", "later": [1]}
    expected = RecordedOptions(access=AccessMode.LOCAL, host="::1", port=1, agent="main")
    assert read_options(written) == expected
