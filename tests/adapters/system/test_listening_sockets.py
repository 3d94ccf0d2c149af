"""Listening on addresses, and what the kernel keeps for a reader that has stopped."""

import socket

import pytest

from holon.adapters.system.listening_sockets import (
    AddressTakenError,
    AddressUnusableError,
    bind_tcp,
    require_bindable,
)
from holon.model.limits import HTTP_UNSENT_BYTES_MAX, KIB


def test_the_kernel_takes_little_for_a_client_that_does_not_read() -> None:
    with bind_tcp("127.0.0.1", 0) as listening, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        client.connect(listening.getsockname())
        listening.setblocking(True)
        connection, _ = listening.accept()
        with connection:
            connection.setblocking(False)
            taken = 0
            try:
                while True:
                    taken += connection.send(bytes(16 * KIB))
            except BlockingIOError:
                pass
    assert taken <= 2 * HTTP_UNSENT_BYTES_MAX


def test_an_address_of_another_machine_is_not_called_taken() -> None:
    with pytest.raises(AddressUnusableError, match=r"this machine has no address 192\.0\.2\.1"):
        bind_tcp("192.0.2.1", 0)


def test_a_port_that_is_taken_is_called_so() -> None:
    with bind_tcp("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        for act in (bind_tcp, require_bindable):
            with pytest.raises(AddressTakenError) as taken:
                act("127.0.0.1", port)
            assert "another program has this port" in str(taken.value.hint)
    require_bindable("127.0.0.1", port)
