"""Failures that repeat themselves: one attempt, the right kind, and a sentence for the operator."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedCall, ScriptedRound
from holon.model.events.briefs import FailureCategory
from holon.model.providers.attempts import ExchangeStage
from holon.model.providers.models import TransportKind
from holon.model.turns.turn import ModelFailed
from tests.providers_over_http.expected import ABORTED, Failure, check_failed, check_sent
from tests.providers_over_http.switchboard import (
    CHAT,
    CODEX,
    MESSAGES,
    WIRES,
    Line,
    Switchboard,
    line_to,
    open_switchboard,
)
from tests.support.wire_server.faults import (
    AnswerFault,
    ErrorInside,
    Fault,
    Raw,
    Refuse,
    html_page,
    redirected,
)
from tests.support.wire_server.server import open_wire_server

CALLS = Script(
    rounds=(
        ScriptedRound(
            text="Let me see.",
            calls=(
                ScriptedCall(name="Enqueue", input={"text": "one"}),
                ScriptedCall(name="Enqueue", input={"text": "two"}),
            ),
        ),
    )
)
TRANSPORT, PROTOCOL = FailureCategory.TRANSPORT, FailureCategory.PROTOCOL
RUNTIME = FailureCategory.RUNTIME


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fault, and how it shows; `says` is in the sentence and `hint` in the hint."""

    fault: Fault
    shows: Failure
    category: FailureCategory
    says: str
    hint: str = ""


def _refused(status: int, kind: str, **more: object) -> Failure:
    stage = ExchangeStage.RESPONSE_BODY
    return Failure(kind=kind, stage=stage, status=status, retryable=False, **more)  # type: ignore[arg-type]


def _rejected(status: int, *, hint: str = "", code: str | None = None) -> Row:
    return Row(
        fault=Fault(instead=Refuse(status=status, code=code, message="No such luck.")),
        shows=_refused(status, "request_rejected"),
        category=PROTOCOL,
        says="No such luck.",
        hint=hint,
    )


def _locked_out(status: int) -> Row:
    return Row(
        fault=Fault(instead=Refuse(status=status)),
        shows=_refused(status, "auth_rejected"),
        category=TRANSPORT,
        says=f"HTTP {status}",
        hint="credentials",
    )


def _unreadable(fault: Fault, says: str, hint: str = "") -> Row:
    shows = Failure(
        kind="invalid_response",
        stage=ExchangeStage.DECODE,
        status=200,
        retryable=False,
        flags=frozenset({"is_decode"}),
    )
    return Row(fault=fault, shows=shows, category=PROTOCOL, says=says, hint=hint)


def _twisted(twist: AnswerFault, says: str) -> Row:
    return _unreadable(Fault(twists=(twist,)), says)


def _raw(body: bytes) -> Fault:
    return Fault(instead=Raw(headers={"content-type": "application/json"}, body=body))


ROWS = {
    "400": _rejected(400),
    "401": _locked_out(401),
    "403": _locked_out(403),
    "404": _rejected(404, hint="thinker-1"),
    "404 for the model": _rejected(404, code="model_not_found", hint="thinker-1"),
    "409": _rejected(409),
    "413": _rejected(413),
    "422": _rejected(422),
    "501": _rejected(501),
    "a page": _unreadable(html_page(), "HTML page", "base URL"),
    "a page that refuses": Row(
        fault=html_page(status=404),
        shows=_refused(404, "request_rejected"),
        category=PROTOCOL,
        says="HTML page",
        hint="base URL",
    ),
    "no JSON": _unreadable(_raw(b"{oops"), "not JSON", "base URL"),
    "nothing at all": _unreadable(_raw(b""), "not JSON", "base URL"),
    "JSON of another kind": _unreadable(_raw(b"[1, 2]"), ""),
    "JSON of another shape": _unreadable(_raw(b'{"weather": "fine"}'), ""),
    "JSON with a number that is none": _unreadable(_raw(b'{"id": NaN}'), "not JSON"),
    "an error inside a 200": Row(
        fault=Fault(instead=ErrorInside(code="invalid_request_error", message="No such luck.")),
        shows=Failure(
            kind="request_rejected", stage=ExchangeStage.DECODE, status=200, retryable=False
        ),
        category=PROTOCOL,
        says="No such luck.",
    ),
    "empty content": _twisted(AnswerFault.EMPTY_CONTENT, ""),
    "repeated call ids": _twisted(AnswerFault.DUPLICATE_CALL_IDS, "id"),
    "huge arguments": _twisted(AnswerFault.HUGE_ARGUMENTS, "arguments"),
}
STOP_FOR_NO_CALL = _twisted(AnswerFault.STOP_FOR_NO_CALL, "")


def check_aborted(failed: ModelFailed, row: Row, line: Line, board: Switchboard) -> None:
    timeline = failed.timeline
    assert timeline is not None
    (attempt,) = timeline.attempts
    check_failed(attempt, row.shows, line, number=1, outcome=ABORTED)
    assert (timeline.requested_model_ref, timeline.winning_model_ref) == (line.ref, None)
    assert timeline.active_model_ref == (line.ref if row.shows.asked else None)
    assert board.clock.waits_ms == []
    failure = failed.failure
    assert (failure.category, failure.kind) == (row.category, row.shows.kind)
    assert (failure.provider, failure.model_ref) == (line.provider, line.ref)
    assert (failure.status, failure.retryable) == (row.shows.status, False)
    assert row.says in failure.summary
    assert row.hint in (failure.recovery_hint or "")
    assert failed.retry_at is None


@pytest.mark.requirement("provider-retry:fail-fast-failures")
@pytest.mark.requirement("provider-retry:timeline-with-failure")
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("kind", WIRES)
async def test_one_attempt_and_no_more(tmp_path: Path, kind: TransportKind, row: Row) -> None:
    async with open_wire_server(CALLS, faults=[row.fault]) as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert len(server.requests) == 1
    check_aborted(failed, row, line, board)
    assert failed.timeline is not None
    check_sent(failed.timeline, server)


@pytest.mark.parametrize("kind", [CHAT, MESSAGES])  # the wires that name why a model stopped
async def test_a_stop_for_a_tool_that_is_not_named(tmp_path: Path, kind: TransportKind) -> None:
    async with open_wire_server(CALLS, faults=[STOP_FOR_NO_CALL.fault]) as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    check_aborted(failed, STOP_FOR_NO_CALL, line, board)


@pytest.mark.parametrize("kind", WIRES)
async def test_a_wrong_key_is_told_as_one(tmp_path: Path, kind: TransportKind) -> None:
    async with open_wire_server(CALLS, api_key="another") as server:
        line = line_to(server, kind)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    check_aborted(failed, ROWS["401"], line, board)


@pytest.mark.requirement("provider-retry:fail-closed-selection")
@pytest.mark.requirement("provider-plane:unsupported-transport-fails-closed")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_transport_nobody_speaks_is_refused_before_anything_is_sent(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with open_wire_server(CALLS) as server:
        line = line_to(server, kind, transport="carrier_pigeon")
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert server.requests == []
    row = Row(
        fault=Fault(),
        shows=_never_asked("unsupported_transport"),
        category=PROTOCOL,
        says="carrier_pigeon",
        hint="openai_responses",
    )
    check_aborted(failed, row, line, board)


@pytest.mark.requirement("provider-plane:missing-credential-is-named")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_missing_credential_is_named_before_anything_is_sent(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with open_wire_server(CALLS) as server:
        line = line_to(server, kind, has_key=False)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert server.requests == []
    row = Row(
        fault=Fault(),
        shows=_never_asked("model_unavailable"),
        category=RUNTIME,
        says=line.variable,
        hint=line.variable,
    )
    check_aborted(failed, row, line, board)


def _never_asked(kind: str) -> Failure:
    return Failure(
        kind=kind, stage=ExchangeStage.SELECTION, retryable=False, got_head=False, asked=False
    )


@pytest.mark.requirement("provider-http:no-redirects")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_redirect_is_refused_and_the_key_stays_here(
    tmp_path: Path, kind: TransportKind, status: int
) -> None:
    async with open_wire_server(CALLS) as elsewhere:
        to = line_to(elsewhere, kind).url
        async with open_wire_server(CALLS, faults=[redirected(to, status=status)]) as server:
            line = line_to(server, kind)
            async with open_switchboard(tmp_path, line) as board:
                failed = await board.fail()
    assert (len(server.requests), elsewhere.requests) == (1, [])
    row = Row(
        fault=Fault(),
        shows=_refused(status, "request_rejected", flags=frozenset({"is_redirect"})),
        category=PROTOCOL,
        says=f"HTTP {status}",
        hint="redirects",
    )
    check_aborted(failed, row, line, board)


async def test_an_answer_cut_short_for_another_reason_than_length_is_a_refusal(
    tmp_path: Path,
) -> None:
    told = (
        b'event: response.incomplete\ndata: {"type": "response.incomplete", "response": {"id": "r",'
        b' "status": "incomplete", "output": [], "incomplete_details":'
        b' {"reason": "content_filter"}}}\n\n'
    )
    fault = Fault(instead=Raw(headers={"content-type": "text/event-stream"}, body=told))
    async with open_wire_server(CALLS, faults=[fault]) as server:
        line = line_to(server, CODEX)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    shows = Failure(
        kind="request_rejected", stage=ExchangeStage.DECODE, status=200, retryable=False
    )
    row = Row(fault=fault, shows=shows, category=PROTOCOL, says="content_filter")
    check_aborted(failed, row, line, board)
