"""The secret of a credential program is renewed once a provider refuses it."""

import shlex
import sys
from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.providers.attempts import AttemptOutcome, ProviderAttempt
from holon.model.providers.models import TransportKind
from holon.model.turns.turn import ModelAnswered, ModelFailed
from tests.providers_over_http.expected import RETRYING
from tests.providers_over_http.switchboard import CHAT, WIRES, line_to, open_switchboard
from tests.support.wire_server.server import open_wire_server

SCRIPT = Script(rounds=(ScriptedRound(text="Hello."),))
STALE, FRESH = "very/secret+stale=0123456789", "very/secret+fresh=0123456789"


def handing_out(asked: Path, *secrets: str) -> str:
    """A program that says one secret after the other, the last for ever, and counts."""
    lines = (
        f"said = open({str(asked)!r}, 'a+')",
        "said.seek(0)",
        f"secrets = {secrets!r}",
        "print(secrets[min(len(said.read()), len(secrets) - 1)])",
        "said.write('x')",
    )
    return shlex.join([sys.executable, "-S", "-c", "; ".join(lines)])


def attempts_of(came: ModelAnswered | ModelFailed) -> tuple[ProviderAttempt, ...]:
    """Every attempt of a round, as it is on record."""
    assert came.timeline is not None
    return came.timeline.attempts


@pytest.mark.parametrize("kind", WIRES)
async def test_a_refused_secret_is_renewed_and_the_request_tried_again(
    tmp_path: Path, kind: TransportKind
) -> None:
    asked = tmp_path / "asked"
    async with open_wire_server(SCRIPT, api_key=FRESH) as server:
        line = line_to(server, kind, program=handing_out(asked, STALE, FRESH))
        async with open_switchboard(tmp_path / "home", line) as board:
            spoke = await board.succeed()
            refused, taken = attempts_of(spoke)
            assert (refused.outcome, refused.failure_kind) == (RETRYING, "auth_rejected")
            assert taken.outcome is AttemptOutcome.SUCCEEDED
            await board.succeed()
            assert not [text for text in board.logged if STALE in text or FRESH in text]
    assert asked.read_text() == "xx", "what works is used on"


async def test_a_program_that_has_no_other_secret_lets_the_refusal_stand(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    async with open_wire_server(SCRIPT, api_key=FRESH) as server:
        line = line_to(server, CHAT, program=handing_out(asked, STALE))
        async with open_switchboard(tmp_path / "home", line) as board:
            failed = await board.fail()
            [refused] = attempts_of(failed)
            assert refused.outcome is AttemptOutcome.FAIL_FAST_ABORTED
            assert len(server.requests) == 1
    assert asked.read_text() == "xx"


async def test_a_program_that_fails_once_it_is_asked_again_says_so(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    async with open_wire_server(SCRIPT, api_key=FRESH) as server:
        line = line_to(server, CHAT, program=handing_out(asked, STALE, "two words"))
        async with open_switchboard(tmp_path / "home", line) as board:
            failed = await board.fail()
    assert "credential program" in failed.failure.summary
    assert asked.read_text() == "xx"
