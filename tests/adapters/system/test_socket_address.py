"""Socket files that lie deep."""

import socket
from pathlib import Path

import pytest

from holon.adapters.system.listening_sockets import answers, bind_unix, socket_address


@pytest.mark.parametrize("depth_count", [0, 3])
def test_a_socket_is_bound_and_reached_however_deep_it_lies(
    tmp_path: Path, depth_count: int
) -> None:
    folder = tmp_path.joinpath(*["a-folder-with-a-rather-long-name" * 2] * depth_count)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "holon.sock"
    assert not answers(path)
    with bind_unix(path) as bound, socket.socket(socket.AF_UNIX) as client:
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o600
        with socket_address(str(path)) as address:
            client.connect(address)
        bound.setblocking(True)
        bound.accept()[0].close()
    assert not answers(path)
    bind_unix(path).close()  # what nobody answers on is taken over
