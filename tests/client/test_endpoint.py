"""Which runtime a command talks to, and with which token."""

import os
import socket
from pathlib import Path

import pytest

from holon.adapters.exec.process_table import identity_of
from holon.adapters.system.control_token import BadTokenError
from holon.adapters.system.run_files import RunFiles, RuntimeRecord
from holon.client.endpoint import (
    BadEndpointError,
    EndpointOptions,
    NoRuntimeError,
    TcpEndpoint,
    UnixEndpoint,
    find_endpoint,
)

OWN = "the-token-of-this-home"
GIVEN = "a-token-somebody-gave"


def write_record(files: RunFiles, *, alive: bool) -> None:
    """Write what a runtime says of itself: this very process, or an earlier one of its number."""
    own = identity_of(os.getpid())
    assert own is not None
    files.write_record(
        RuntimeRecord(
            pid=own.pid,
            start_ticks=own.start_ticks - (not alive),
            boot_id=own.boot_id,
            http_addr="127.0.0.1:7878",
        )
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose runtime wrote down where it listens, and has no socket file."""
    files = RunFiles(tmp_path)
    files.folder.mkdir(mode=0o700)
    write_record(files, alive=True)
    files.token.write_text(OWN + "\n", encoding="ascii")
    files.token.chmod(0o600)
    return tmp_path


def local(port: int, token: str | None) -> TcpEndpoint:
    return TcpEndpoint("127.0.0.1", port, token)


@pytest.mark.parametrize(
    ("wanted", "environ", "expected"),
    [
        (EndpointOptions(), {}, local(7878, OWN)),
        (EndpointOptions(), {"HOLON_HTTP_ADDR": "127.0.0.1:7878"}, local(7878, OWN)),
        (EndpointOptions(), {"HOLON_HTTP_ADDR": "0.0.0.0:7878"}, local(7878, OWN)),
        (EndpointOptions(), {"HOLON_HTTP_ADDR": "127.0.0.1:9"}, local(9, None)),
        (EndpointOptions(), {"HOLON_CONTROL_TOKEN": GIVEN}, local(7878, GIVEN)),
        (EndpointOptions(token=GIVEN), {"HOLON_CONTROL_TOKEN": "x"}, local(7878, GIVEN)),
        (
            EndpointOptions(connect="https://h.example.org/api/"),
            {},
            TcpEndpoint("h.example.org", 443, None, secure=True, prefix="/api"),
        ),
        (
            EndpointOptions(connect="http://h.example.org:7878", token=GIVEN),
            {},
            TcpEndpoint("h.example.org", 7878, GIVEN),
        ),
        (EndpointOptions(connect="unix:/run/x.sock"), {}, UnixEndpoint(Path("/run/x.sock"))),
    ],
)
def test_flags_come_before_the_environment_and_that_before_the_home(
    home: Path, wanted: EndpointOptions, environ: dict[str, str], expected: object
) -> None:
    assert find_endpoint(home, wanted, environ) == expected


@pytest.mark.parametrize(
    ("wanted", "environ"),
    [
        (EndpointOptions(connect="http://127.0.0.1:7878"), {}),
        (EndpointOptions(), {"HOLON_HTTP_ADDR": "127.0.0.1:7878"}),
    ],
)
def test_whoever_listens_where_a_dead_runtime_did_gets_no_token(
    home: Path, wanted: EndpointOptions, environ: dict[str, str]
) -> None:
    write_record(RunFiles(home), alive=False)
    assert find_endpoint(home, wanted, environ) == local(7878, None)
    with pytest.raises(NoRuntimeError):
        find_endpoint(home, EndpointOptions(), {})


def test_the_socket_file_is_the_first_choice(home: Path) -> None:
    path = RunFiles(home).socket
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        assert find_endpoint(home, EndpointOptions(), {}) == UnixEndpoint(path)


def test_a_token_file_that_others_can_read_is_refused(home: Path) -> None:
    RunFiles(home).token.chmod(0o644)
    with pytest.raises(BadTokenError, match="others can read"):
        find_endpoint(home, EndpointOptions(), {})


def test_nothing_there_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NoRuntimeError) as nobody:
        find_endpoint(tmp_path, EndpointOptions(), {})
    assert nobody.value.hint == "start one with: holon daemon start"


@pytest.mark.parametrize(
    "address", ["", "ftp://x", "http://", "http://u:p@x", "http://x?y", "http://x:99999", "x"]
)
def test_an_address_that_is_none_is_bad_input(home: Path, address: str) -> None:
    with pytest.raises(BadEndpointError):
        find_endpoint(home, EndpointOptions(connect=address), {})
