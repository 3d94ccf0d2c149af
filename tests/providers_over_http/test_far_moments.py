"""A provider that is back in hours: the next model is used, or the turn is deferred."""

from datetime import timedelta
from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.limits import PROVIDER_DEFERRAL_MS_MAX
from holon.model.providers.attempts import ExchangeStage
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import TextBlock
from tests.providers_over_http.expected import ABORTED, Failure, check_failed, check_succeeded
from tests.providers_over_http.switchboard import (
    CHAT,
    RESPONSES,
    WIRES,
    line_to,
    moment_after,
    open_switchboard,
)
from tests.support.manual_clock import DAWN
from tests.support.wire_server.faults import ErrorInside, Fault, Refuse, rate_limited, usage_limited
from tests.support.wire_server.server import open_wire_server

SCRIPT = Script(rounds=(ScriptedRound(text="Here I am."),))
HOURS_S = 3 * 3_600
BODY, DECODE = ExchangeStage.RESPONSE_BODY, ExchangeStage.DECODE


def _in_hours(kind: str, *, status: int, stage: ExchangeStage, retryable: bool) -> Failure:
    return Failure(
        kind=kind,
        status=status,
        stage=stage,
        retryable=retryable,
        retry_after_ms=HOURS_S * 1_000,
    )


RATE_LIMITED = _in_hours("rate_limited", status=429, stage=BODY, retryable=True)
USED_UP = _in_hours("usage_limit_reached", status=429, stage=BODY, retryable=False)
ROWS = {
    "429 with hours": (rate_limited(retry_after_seconds=HOURS_S), RATE_LIMITED),
    "503 with hours": (
        Fault(instead=Refuse(status=503, headers={"retry-after": str(HOURS_S)})),
        _in_hours("server_error", status=503, stage=BODY, retryable=True),
    ),
    "used up, told in the error": (usage_limited(resets_in_seconds=HOURS_S), USED_UP),
    "used up, told in the head": (
        Fault(
            instead=Refuse(
                status=429,
                code="usage_limit_reached",
                headers={"retry-after": str(HOURS_S)},
            )
        ),
        USED_UP,
    ),
    "used up, told inside a 200": (
        Fault(
            instead=ErrorInside(code="usage_limit_reached", details={"resets_in_seconds": HOURS_S})
        ),
        _in_hours("usage_limit_reached", status=200, stage=DECODE, retryable=False),
    ),
}


@pytest.mark.requirement("provider-retry:named-moment")
@pytest.mark.parametrize(("fault", "shows"), ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("kind", WIRES)
async def test_with_nobody_else_to_ask_the_failure_names_the_moment(
    tmp_path: Path, kind: TransportKind, fault: Fault, shows: Failure
) -> None:
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert len(server.requests) == 1
    assert failed.timeline is not None
    (attempt,) = failed.timeline.attempts
    check_failed(attempt, shows, line, number=1, outcome=ABORTED)
    assert failed.retry_at == moment_after(attempt.completed_at, seconds=HOURS_S)
    assert failed.failure.kind == shows.kind
    assert failed.failure.metadata["retry_after_ms"] == str(HOURS_S * 1_000)
    assert board.clock.waits_ms == []


@pytest.mark.requirement("provider-retry:retry-after")
@pytest.mark.parametrize(("fault", "shows"), ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("kind", WIRES)
async def test_somebody_else_is_asked_instead_of_waiting(
    tmp_path: Path, kind: TransportKind, fault: Fault, shows: Failure
) -> None:
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_wire_server(SCRIPT) as other,
    ):
        line, backup = line_to(server, kind), line_to(other, CHAT, provider="backup")
        async with open_switchboard(tmp_path, line, backup) as board:
            spoke = await board.succeed()
    assert spoke.blocks == (TextBlock(text="Here I am."),)
    assert spoke.timeline is not None
    lost, won = spoke.timeline.attempts
    check_failed(lost, shows, line, number=1, outcome=ABORTED, to_fallback=True)
    check_succeeded(won, backup, number=1)
    assert board.clock.waits_ms == []


async def test_the_earliest_of_several_moments_counts(tmp_path: Path) -> None:
    faults = [usage_limited(resets_in_seconds=s) for s in (7_200, 3_600)]
    async with (
        open_wire_server(SCRIPT, faults=faults[:1]) as server,
        open_wire_server(SCRIPT, faults=faults[1:]) as other,
    ):
        lines = line_to(server, RESPONSES), line_to(other, CHAT, provider="backup")
        async with open_switchboard(tmp_path, *lines) as board:
            failed = await board.fail()
    assert failed.timeline is not None
    last = failed.timeline.attempts[-1].completed_at
    assert failed.retry_at == moment_after(last, seconds=3_600)


async def test_no_moment_is_named_when_waiting_is_switched_off(tmp_path: Path) -> None:
    fault = usage_limited(resets_in_seconds=HOURS_S)
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, CHAT)
        async with open_switchboard(tmp_path, line, deferral_allowed=False) as board:
            failed = await board.fail()
    assert failed.retry_at is None
    assert failed.failure.recovery_hint is not None


async def test_a_moment_weeks_away_is_looked_at_again_after_a_week(tmp_path: Path) -> None:
    fault = usage_limited(resets_in_seconds=30 * 86_400)
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, CHAT)) as board,
    ):
        failed = await board.fail()
    assert failed.timeline is not None
    at = failed.timeline.attempts[0].completed_at
    assert failed.retry_at == moment_after(at, seconds=PROVIDER_DEFERRAL_MS_MAX // 1_000)


@pytest.mark.parametrize("kind", WIRES)
async def test_a_reset_told_as_a_moment_is_that_moment(tmp_path: Path, kind: TransportKind) -> None:
    reset = moment_after(DAWN, seconds=HOURS_S)
    told = {"resets_at": int(reset.timestamp())}
    fault = Fault(instead=Refuse(status=429, code="usage_limit_reached", details=told))
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        failed = await board.fail()
    assert failed.retry_at is not None
    # Counted from when the refusal was read, and the clock ticks until it is noted.
    assert timedelta() <= failed.retry_at - reset < timedelta(milliseconds=20)
