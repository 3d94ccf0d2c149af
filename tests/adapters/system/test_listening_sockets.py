"""What the kernel keeps for a reader that has stopped."""

import socket

from holon.adapters.system.listening_sockets import bind_tcp
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
