"""Transient failures: the same model is tried three times, and every attempt is recorded."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.events.briefs import FailureCategory
from holon.model.providers.attempts import ExchangeStage
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import TextBlock
from tests.providers_over_http.expected import (
    EXHAUSTED,
    RETRYING,
    Failure,
    check_failed,
    check_sent,
    check_succeeded,
    check_waits,
)
from tests.providers_over_http.switchboard import (
    CHAT,
    MESSAGES,
    WIRES,
    Line,
    line_to,
    open_switchboard,
)
from tests.support.wire_server.faults import (
    ErrorInside,
    Fault,
    Gate,
    Refuse,
    html_page,
    rate_limited,
)
from tests.support.wire_server.server import open_wire_server

ANSWER = "A long answer. " * 200
SCRIPT = Script(rounds=(ScriptedRound(text=ANSWER),))

HEAD = ExchangeStage.RESPONSE_HEAD
BODY = ExchangeStage.RESPONSE_BODY


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fault, and how it shows. Faults with gates are made anew for each request."""

    fault: Callable[[], Fault]
    shows: Failure


def _status(status: int, **headers: str) -> Callable[[], Fault]:
    return lambda: Fault(instead=Refuse(status=status, headers=headers))


def _told(kind: str, status: int, retry_after_ms: int | None = None, **more: object) -> Failure:
    return Failure(
        kind=kind,
        stage=BODY,
        status=status,
        retryable=True,
        retry_after_ms=retry_after_ms,
        **more,  # type: ignore[arg-type]
    )


TIMED_OUT = frozenset({"is_timeout"})
AT_ONCE = {
    "429": Row(fault=rate_limited, shows=_told("rate_limited", 429)),
    "429 with a moment": Row(
        fault=lambda: rate_limited(retry_after_seconds=7),
        shows=_told("rate_limited", 429, 7_000),
    ),
    "429 with milliseconds": Row(
        fault=_status(429, **{"retry-after-ms": "1250"}), shows=_told("rate_limited", 429, 1_250)
    ),
    "500": Row(fault=_status(500), shows=_told("server_error", 500)),
    "502": Row(fault=_status(502), shows=_told("server_error", 502)),
    "502 as a page": Row(fault=lambda: html_page(status=502), shows=_told("server_error", 502)),
    "503": Row(fault=_status(503), shows=_told("server_error", 503)),
    "503 with a moment": Row(
        fault=_status(503, **{"retry-after": "2"}), shows=_told("server_error", 503, 2_000)
    ),
    "504": Row(fault=_status(504), shows=_told("timeout", 504, flags=TIMED_OUT)),
    "408": Row(fault=_status(408), shows=_told("timeout", 408, flags=TIMED_OUT)),
    "529": Row(fault=_status(529), shows=_told("server_error", 529)),
    "overloaded inside a 200": Row(
        fault=lambda: Fault(instead=ErrorInside(code="overloaded_error")),
        shows=Failure(kind="server_error", stage=ExchangeStage.DECODE, status=200, retryable=True),
    ),
    "cut before the head": Row(
        fault=lambda: Fault(cut_at_byte=0),
        shows=Failure(kind="connection", stage=HEAD, retryable=True, got_head=False),
    ),
    "reset before the head": Row(
        fault=lambda: Fault(cut_at_byte=0, reset=True),
        shows=Failure(kind="connection", stage=HEAD, retryable=True, got_head=False),
    ),
    "cut inside the head": Row(
        fault=lambda: Fault(cut_at_byte=30),
        shows=Failure(kind="connection", stage=HEAD, retryable=True, got_head=False),
    ),
    "cut inside the body": Row(
        fault=lambda: Fault(cut_at_byte=1_500),
        shows=_told("connection", 200, flags=frozenset({"is_body"})),
    ),
}
LATE = {
    "no head": Row(
        fault=lambda: Fault(head_gate=Gate()),
        shows=Failure(kind="timeout", stage=HEAD, retryable=True, flags=TIMED_OUT, got_head=False),
    ),
    "no rest of the body": Row(
        fault=lambda: Fault(body_gate=Gate(), gate_at_byte=200),
        shows=_told("timeout", 200, flags=frozenset({"is_timeout", "is_body"})),
    ),
}


@pytest.mark.requirement("provider-retry:two-retries")
@pytest.mark.requirement("provider-retry:retryable-failures")
@pytest.mark.requirement("provider-retry:timeline-with-failure")
@pytest.mark.parametrize("row", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("kind", WIRES)
async def test_three_attempts_and_no_more(tmp_path: Path, kind: TransportKind, row: Row) -> None:
    faults = [row.fault() for _ in range(3)]
    async with open_wire_server(SCRIPT, faults=faults) as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert len(server.requests) == 3
    timeline = failed.timeline
    assert timeline is not None
    for number, attempt in enumerate(timeline.attempts, 1):
        outcome = EXHAUSTED if number == 3 else RETRYING
        check_failed(attempt, row.shows, line, number=number, outcome=outcome)
    assert (timeline.requested_model_ref, timeline.active_model_ref) == (line.ref, line.ref)
    assert timeline.winning_model_ref is None
    check_waits(timeline, board.clock)
    check_sent(timeline, server)
    failure = failed.failure
    assert (failure.category, failure.kind) == (FailureCategory.TRANSPORT, row.shows.kind)
    assert (failure.provider, failure.model_ref) == (line.provider, line.ref)
    assert (failure.status, failure.retryable) == (row.shows.status, True)
    assert "gave up after 3 attempts" in failure.summary
    assert failure.metadata["attempt_count"] == "3"
    assert failed.retry_at is None


@pytest.mark.requirement("provider-retry:timeline-with-success")
@pytest.mark.parametrize("failures_count", [1, 2])
@pytest.mark.parametrize("row", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("kind", WIRES)
async def test_an_answer_comes_with_the_failures_before_it(
    tmp_path: Path, kind: TransportKind, row: Row, failures_count: int
) -> None:
    faults = [row.fault() for _ in range(failures_count)]
    async with open_wire_server(SCRIPT, faults=faults) as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line) as board:
            spoke = await board.succeed()
    assert spoke.blocks == (TextBlock(text=ANSWER),)
    timeline = spoke.timeline
    assert timeline is not None
    *failed, won = timeline.attempts
    assert len(failed) == failures_count
    for number, attempt in enumerate(failed, 1):
        check_failed(attempt, row.shows, line, number=number, outcome=RETRYING)
    check_succeeded(won, line, number=failures_count + 1)
    check_waits(timeline, board.clock)
    check_sent(timeline, server)
    assert timeline.winning_model_ref == timeline.active_model_ref == line.ref
    assert timeline.aggregated_token_usage == spoke.usage == won.token_usage
    # Every attempt asked the same thing.
    assert len({request.body for request in server.requests}) == 1


@pytest.mark.requirement("provider-http:timeouts-are-retryable")
@pytest.mark.parametrize("row", LATE.values(), ids=LATE)
async def test_an_answer_that_does_not_come_is_a_timeout(tmp_path: Path, row: Row) -> None:
    faults = [row.fault() for _ in range(3 * len(WIRES))]
    async with open_wire_server(SCRIPT, faults=faults) as server:
        lines = [line_to(server, kind) for kind in WIRES]
        async with open_switchboard(
            tmp_path, *lines, fallback_disabled=True, http_timeout_ms=700, stream_idle_ms=700
        ) as board:
            came = await board.ask_every_line()
        for request in server.requests:
            await request.left.wait()  # nobody is left hanging on the server's side
    for line, failed in came.items():
        assert failed.timeline is not None
        for number, attempt in enumerate(failed.timeline.attempts, 1):
            outcome = EXHAUSTED if number == 3 else RETRYING
            check_failed(attempt, row.shows, line, number=number, outcome=outcome)
        assert len(failed.timeline.attempts) == 3


@pytest.mark.parametrize("kind", [CHAT, MESSAGES])
async def test_a_timeout_is_recovered_from(tmp_path: Path, kind: TransportKind) -> None:
    fault = Fault(head_gate=Gate())
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line, http_timeout_ms=1_000) as board:
            spoke = await board.succeed()
    assert spoke.timeline is not None
    first, second = spoke.timeline.attempts
    check_failed(first, LATE["no head"].shows, line, number=1, outcome=RETRYING)
    check_succeeded(second, line, number=2)


@pytest.mark.requirement("provider-http:connection-failures-are-retryable")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_port_that_refuses_is_a_connection_failure(
    tmp_path: Path, kind: TransportKind
) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        line = Line(kind=kind, base_url=address, provider="nowhere")
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    shows = Failure(
        kind="connection",
        stage=ExchangeStage.CONNECT,
        retryable=True,
        flags=frozenset({"is_connect"}),
        got_head=False,
    )
    assert failed.timeline is not None
    for number, attempt in enumerate(failed.timeline.attempts, 1):
        outcome = EXHAUSTED if number == 3 else RETRYING
        check_failed(attempt, shows, line, number=number, outcome=outcome)
        assert attempt.transport_diagnostics is not None
        assert "ConnectionRefusedError" in attempt.transport_diagnostics.source_chain[-1]
    assert len(failed.timeline.attempts) == 3
    check_waits(failed.timeline, board.clock)
    assert failed.failure.recovery_hint == "check the network and the provider's base URL"


@pytest.mark.requirement("provider-retry:retry-after")
async def test_a_moment_the_provider_names_is_waited_for(tmp_path: Path) -> None:
    faults = [rate_limited(retry_after_seconds=7), rate_limited(retry_after_seconds=60)]
    async with (
        open_wire_server(SCRIPT, faults=faults) as server,
        open_switchboard(tmp_path, line_to(server, CHAT)) as board,
    ):
        await board.succeed()
    first, second = board.clock.waits_ms
    assert 7_000 <= first < 7_500
    assert 60_000 <= second < 60_500
