"""A model over HTTP that answers at once, as a process of its own. Standard library only.

Owns:  the answers of a run: one command for each round, then a word. A run is what is asked for
       under `/<name>/<rounds>/`; the server counts its requests and remembers when each was whole.
Rule 1: `GET /<name>/times` returns those moments, in nanoseconds; `GET /<name>/first` the body of
        the first request. Both sides of a comparison are timed here, by the same clock.
"""

import json
import socket
import sys
import threading
import time
from collections import defaultdict
from typing import Any, Final

RECEIVE_BYTES: Final = 256 * 1024
_USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

_times_ns: Final[dict[str, list[int]]] = defaultdict(list)
_first: Final[dict[str, bytes]] = {}


def main() -> None:
    """Say the port on stdout, then serve until stdin ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    sys.stdin.read()


def _accept(listener: socket.socket) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_serve, args=(client,), daemon=True).start()


def _serve(client: socket.socket) -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client:
        while (request := _received(client)) is not None:
            method, path, body = request
            content = _told(path) if method == "GET" else _answered(path, body)
            head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            client.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)


def _received(client: socket.socket) -> tuple[str, str, bytes] | None:
    heard = b""
    while b"\r\n\r\n" not in heard:
        piece = client.recv(RECEIVE_BYTES)
        if not piece:
            return None
        heard += piece
    head, _, body = heard.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(":") for line in lines)}
    missing = int(headers.get("content-length", "0")) - len(body)
    while missing > 0 and (piece := client.recv(RECEIVE_BYTES)):
        body += piece
        missing -= len(piece)
    method, path, _ = first.split(" ")
    return method, path, body


def _told(path: str) -> bytes:
    _, name, what = path.split("/")
    return _first[name] if what == "first" else json.dumps(_times_ns[name]).encode()


def _answered(path: str, body: bytes) -> bytes:
    _, name, rounds, *_ = path.split("/")
    times_ns = _times_ns[name]
    times_ns.append(time.monotonic_ns())
    _first.setdefault(name, body)
    number = len(times_ns)
    message: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if number <= int(rounds):
        called = {"name": "ExecCommand", "arguments": '{"cmd":"true"}'}
        call = {"id": f"call_{number}", "type": "function", "function": called}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "finish_reason": finish, "message": message}
    return json.dumps(
        {
            "id": f"answer_{number}",
            "object": "chat.completion",
            "model": "m",
            "choices": [choice],
            "usage": _USAGE,
        }
    ).encode()


if __name__ == "__main__":
    main()
