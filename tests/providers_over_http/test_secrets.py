"""A server that echoes the key it was sent: the key appears nowhere else."""

from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import text_of
from holon.model.turns.turn import ModelFailed
from tests.providers_over_http.switchboard import (
    CHAT,
    MESSAGES,
    WIRES,
    forms_of,
    line_to,
    open_switchboard,
)
from tests.support.wire_server.faults import ErrorInside, Fault, Raw, Refuse
from tests.support.wire_server.server import open_wire_server

SCRIPT = Script(rounds=(ScriptedRound(text="Nothing to hide."),))


def _tattling(said: str) -> list[Fault]:
    """Every way this server can repeat something."""
    page = f"<!doctype html><html><body>{said}</body></html>".encode()
    head = {"x-request-id": said, "content-type": f"text/plain; x={said}"}
    return [
        Fault(instead=Refuse(status=401, message=f"Incorrect API key provided: {said}.")),
        Fault(instead=Refuse(status=400, code=said, message="Bad.")),
        Fault(instead=Refuse(status=400, message="Bad.", details={said: said, "param": said})),
        Fault(instead=Refuse(status=429, message=said, headers={"retry-after": said})),
        Fault(instead=ErrorInside(code="invalid_request_error", message=f"no: {said}")),
        Fault(instead=Raw(status=418, headers=head, body=said.encode())),
        Fault(instead=Raw(headers={"content-type": "text/html"}, body=page)),
        Fault(instead=Raw(headers=head, body=f'{{"{said}": '.encode())),
        Fault(instead=Raw(status=307, headers={"location": f"http://127.0.0.1:9/{said}"})),
    ]


def _attempts_count(fault: Fault) -> int:
    return 3 if isinstance(fault.instead, Refuse) and fault.instead.status == 429 else 1


@pytest.mark.requirement("provider-http:no-secret-in-errors")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_key_the_server_repeats_is_nowhere(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    async with open_wire_server(SCRIPT) as server:
        line = line_to(server, kind, stream=stream)
        async with open_switchboard(tmp_path, line) as board:
            for form in forms_of(line.secret)[:3]:
                for fault in _tattling(form):
                    server.plan(*[fault] * _attempts_count(fault))
                    assert isinstance(await board.ask(), ModelFailed)
    # The switchboard itself has looked; here, that it had something to look at.
    assert line.secret in str(server.requests[0].headers)
    assert any("[secret:" in repr(came) or "[redacted]" in repr(came) for came in board.came)
    assert board.logged
    assert list(board.recorded_in.glob("*.json"))


@pytest.mark.parametrize("kind", [CHAT, MESSAGES])
async def test_a_key_in_an_answer_is_not_kept(tmp_path: Path, kind: TransportKind) -> None:
    async with open_wire_server(SCRIPT) as probe:
        secret = line_to(probe, kind).secret
    script = Script(rounds=(ScriptedRound(text=f"Your key is {secret}!"),))
    async with (
        open_wire_server(script) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        spoke = await board.succeed()
    assert text_of(spoke.blocks).startswith("Your key is [secret:")


async def test_the_search_for_secrets_can_find_one(tmp_path: Path) -> None:
    async with (
        open_wire_server(SCRIPT) as server,
        open_switchboard(tmp_path, line_to(server, CHAT)) as board,
    ):
        await board.succeed()
        recording = next(board.recorded_in.glob("*.json"))
        clean = recording.read_text()
        for form in forms_of(board.lines[0].secret):
            board.logged.append(f"sent {form}")
            recording.write_text(f"{clean}{form}")
            assert [leak.partition(":")[0] for leak in board.leaks()] == ["recorded", "logged"]
            board.logged.pop()
        recording.write_text(clean)
