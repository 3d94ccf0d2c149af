"""A runtime that answers with what a terminal would obey, or with nonsense."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.client import event_stream
from holon.wire.server_sent_events import SseEvent

EVIL = "x\x1b]0;owned\x07\x1b[2J\x9b31m\u202ey\nz"
ENTRY = {
    "identity": {"agent_id": EVIL},
    "status": EVIL,
    "scheduling_posture": {"posture": EVIL, "reason": EVIL},
    "pending": 1,
    "model": {"effective_model": EVIL},
}
EVENT = {"event_seq": 1, "ts": EVIL, "agent_id": EVIL, "type": EVIL, "payload": {"kind": EVIL}}
TASK = {"task_id": EVIL, "status": EVIL, "summary": EVIL, "updated_at": EVIL}
TURN = {
    "turn_index": EVIL,
    "opened_at": EVIL,
    "terminal": {"kind": EVIL, "reason": EVIL},
    "entries": [
        {
            "kind": EVIL,
            "text": EVIL,
            "tool_names": [EVIL],
            "tool_results": [{"tool_name": EVIL, "result_preview": EVIL, "input_preview": EVIL}],
        }
    ],
}
REFUSAL = {"ok": False, "code": EVIL, "error": EVIL, "hint": EVIL}


@contextmanager
def answering(status: int, answer: bytes) -> Iterator[str]:
    """The address of a server that gives everybody the same answer."""
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(answer)}\r\nconnection: close\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_all() -> None:
            while True:
                peer, _ = listening.accept()
                with peer:
                    if peer.recv(65_536).startswith(b"BYE"):
                        return
                    peer.sendall(head.encode() + answer)

        thread = threading.Thread(target=answer_all)
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            with socket.create_connection(("127.0.0.1", port)) as last:
                last.sendall(b"BYE")
            thread.join()


def asked(tmp_path: Path, status: int, answer: Any, *command: str) -> Result:
    raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    with answering(status, raw) as address:
        return CliRunner().invoke(main, [*command, "--home", str(tmp_path), "--connect", address])


@pytest.mark.parametrize(
    ("command", "status", "answer"),
    [
        (("agent", "list"), 200, [ENTRY]),
        (("status", "--agent", "a"), 200, {**ENTRY, "agent": {"id": EVIL, "status": EVIL}}),
        (("task", "list", "--agent", "a"), 200, {"tasks": [TASK], "next_after": EVIL}),
        (("task", "status", "--agent", "a", "x"), 200, {**TASK, "command": {"cmd": EVIL}}),
        (("transcript", "--agent", "a"), 200, {"turns": [TURN]}),
        (("events", "tail", "--agent", "a"), 200, {"events": [EVENT]}),
        (("prompt", "--agent", "a", "hi"), 200, {"agent_id": EVIL, "message_id": EVIL}),
        (("trigger", "url", "--agent", "a"), 200, {"external_trigger": {"trigger_url": EVIL}}),
        (("agent", "stop", "a"), 409, REFUSAL),
        (("agent", "list", "--json"), 200, [ENTRY]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_nothing_a_terminal_would_obey_gets_through(
    tmp_path: Path, command: tuple[str, ...], status: int, answer: Any
) -> None:
    done = asked(tmp_path, status, answer, *command)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    shown = done.stdout + done.stderr
    assert "x" in shown
    assert not {char for char in "\x1b\x07\x9b\u202e" if char in shown}


@pytest.mark.parametrize("answer", [b"", b"hello", b"\xff\xfe", b"[" * 100_000], ids=repr)
def test_an_answer_that_is_no_json_is_told_as_such(tmp_path: Path, answer: bytes) -> None:
    done = asked(tmp_path, 200, answer, "status", "--agent", "a")
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert "did not respond with JSON" in done.stderr


@pytest.mark.parametrize("answer", [[], {}, 1, None, "no"], ids=repr)
@pytest.mark.parametrize(
    "command",
    [
        ("tail",),
        ("transcript",),
        ("events", "tail"),
        ("task", "list"),
        ("task", "output", "x"),
        ("timer", "list"),
        ("work-item", "create", "x"),
        ("trigger", "url"),
        ("prompt", "x"),
        ("agent", "model", "get"),
        ("status",),
    ],
    ids=" ".join,
)
def test_an_answer_of_another_shape_is_told_as_such(
    tmp_path: Path, answer: Any, command: tuple[str, ...]
) -> None:
    done = asked(tmp_path, 200, answer, *command, "--agent", "a")
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert "unexpected response" in done.stderr


@pytest.mark.parametrize("answer", [{}, 1, [1], [{}]], ids=repr)
def test_a_list_of_something_else_is_told_as_such(tmp_path: Path, answer: Any) -> None:
    done = asked(tmp_path, 200, answer, "agent", "list")
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert "unexpected response" in done.stderr


@pytest.mark.parametrize(
    "command",
    [("events", "stream"), ("events", "stream", "--all"), ("tail", "--follow")],
    ids=" ".join,
)
@pytest.mark.parametrize("sent", ["{nope", "[" * 100_000, "{}"], ids=lambda sent: sent[:5])
def test_a_stream_of_something_else_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], sent: str
) -> None:
    came = [SseEvent(event="x", data=sent)]
    monkeypatch.setattr(event_stream, "follow", lambda *_args, **_kwargs: iter(came))
    done = asked(tmp_path, 200, {"events": [], "briefs": []}, *command, "--agent", "a")
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert isinstance(done.exception, SystemExit), done.exception
    assert "invalid events" in done.stderr
