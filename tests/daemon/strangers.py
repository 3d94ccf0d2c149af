"""Programs that are in a runtime's place, or are runtimes of another version."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Answers each request with the next of its bodies, whatever was asked; ends after a shutdown.
_NEARBY = """
import json, os, socket, sys
path, status, answers = sys.argv[1], sys.argv[2], sys.argv[3]
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
listening.listen()
print("ready", flush=True)
while True:
    peer, _ = listening.accept()
    asked = peer.recv(65536)
    ends = b"POST /control/runtime/shutdown" in asked
    code = status if ends else "200 OK"
    body = (answers if not ends else '{"ok": true, "message": "bye"}').replace(
        "OWN_PID", str(os.getpid())
    )
    peer.sendall(f"HTTP/1.1 {code}\\r\\ncontent-length: {len(body)}\\r\\n\\r\\n{body}".encode())
    peer.close()
    if ends and code.startswith("2"):
        break
"""


@contextmanager
def nearby_runtime(
    path: Path, body: str, *, shutdown_status: str = "200 OK"
) -> Iterator[subprocess.Popen[str]]:
    """A runtime of another version, in a process of its own; OWN_PID stands for its number."""
    with subprocess.Popen(
        [sys.executable, "-c", _NEARBY, str(path), shutdown_status, body],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@contextmanager
def stranger_on(path: Path, says: bytes) -> Iterator[None]:
    """Another program that listens on the socket, says something and hangs up."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def answer() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(65_536)
                    peer.sendall(says)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
