"""Whole conversations: a real host on a real home, talking to a real server over every wire."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import (
    Expectation,
    Script,
    ScriptedCall,
    ScriptedRound,
    ScriptedRule,
)
from holon.adapters.system.clock import SystemClock
from holon.model.events.briefs import BriefKind, BriefRecord, FailureCategory
from holon.model.events.event import (
    AuditEvent,
    Event,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    TurnEnded,
)
from holon.model.providers.attempts import AttemptOutcome
from holon.model.providers.models import TransportKind
from holon.model.turns.transcript import AssistantRound, RuntimeFailure, TurnLog
from holon.model.turns.turn import TerminalKind
from holon.model.values import AgentId
from holon.projections.turns.run_result import FinalStatus, RunResult
from holon.runtime.host import Host
from holon.serve.configured_host import open_configured_host
from holon.serve.one_shot import run_once
from tests.providers_over_http.switchboard import (
    CHAT,
    MESSAGES,
    WIRES,
    Line,
    environ_of,
    forms_of,
    line_to,
    settings_for,
)
from tests.support.wire_server.faults import FINE, AnswerFault, Fault, Raw, Refuse, usage_limited
from tests.support.wire_server.server import WireServer, open_wire_server

ADA = AgentId("ada")
WORK = Script(
    rules=(
        ScriptedRule(
            when="a follow-up",
            rounds=(ScriptedRound(text="The follow-up is done."),),
        ),
        ScriptedRule(
            when="please",
            rounds=(
                ScriptedRound(
                    text="I note it down.",
                    calls=(ScriptedCall(name="Enqueue", input={"text": "a follow-up"}),),
                    expect=Expectation(says="please", tools=("Enqueue", "Sleep")),
                ),
                ScriptedRound(text="It is noted."),
            ),
        ),
    )
)
MISTAKES = Script(
    rounds=(
        ScriptedRound(calls=(ScriptedCall(name="Enqueue", input='{"text": "never clos'),)),
        ScriptedRound(
            calls=(ScriptedCall(name="Levitate", input={"height": 3}),),
            expect=Expectation(result_of={"Enqueue": "invalid_tool_input"}),
        ),
        ScriptedRound(
            text="I shall do without.",
            expect=Expectation(result_of={"Levitate": "unknown_tool"}),
        ),
    )
)
# A name models make up, with a character that every provider refuses to read again.
MADE_UP = Script(
    rounds=(
        ScriptedRound(calls=(ScriptedCall(name="multi_tool_use.parallel", input={"uses": []}),)),
        ScriptedRound(text="One after the other, then."),
    )
)
SILENT = Script(
    rounds=(
        ScriptedRound(text="I look.", calls=(ScriptedCall(name="AgentGet", input={}),)),
        ScriptedRound(text="Nobody hears this."),
    )
)


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """A run, and everything it left behind."""

    result: RunResult
    briefs: tuple[BriefRecord, ...]
    events: tuple[Event, ...]
    turns: tuple[TurnLog, ...]

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def open_home(home: Path, *lines: Line, **changes: object) -> AsyncIterator[Host]:
    environ = environ_of(lines) | {"HOME": str(home)}
    settings = settings_for(home, lines, environ, **changes)
    async with open_configured_host(settings, environ) as served:
        yield served.host
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for line in lines:
        for form in forms_of(line.secret):
            assert form.encode() not in stored


async def run_in(host: Host, text: str) -> RunOutcome:
    result = await run_once(host, SystemClock(), agent_id=ADA, text=text)
    audit: list[AuditEvent] = []
    while page := await host.reads.events.events_after(
        ADA, audit[-1].event_seq if audit else 0, limit=100
    ):
        audit.extend(page)
    return RunOutcome(
        result=result,
        briefs=tuple(await host.reads.events.briefs(ADA, limit=10)),
        events=tuple(each.event for each in audit),
        turns=tuple(await host.reads.turns.recent_turns(ADA, limit=10)),
    )


async def run_on(server: WireServer, home: Path, kind: TransportKind, text: str) -> RunOutcome:
    async with open_home(home, line_to(server, kind)) as host:
        return await run_in(host, text)


def rounds_of(told: RunOutcome) -> list[AssistantRound]:
    entries = [entry.data for turn in told.turns for entry in turn.entries]
    return [data for data in entries if isinstance(data, AssistantRound)]


@pytest.mark.requirement("provider-retry:timeline-on-record")
@pytest.mark.requirement("provider-retry:round-telemetry")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_conversation_with_a_tool_ends_in_a_brief(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    async with open_wire_server(WORK) as server:
        line = line_to(server, kind, stream=stream)
        async with open_home(tmp_path, line) as host:
            told = await run_in(host, "please")
    assert told.result.final_status is FinalStatus.COMPLETED
    assert [brief.text for brief in told.briefs if brief.kind is BriefKind.RESULT] == [
        "It is noted.",
        "The follow-up is done.",
    ]
    assert len(told.of(ToolExecuted)) == 1
    completed = [e for e in told.events if isinstance(e, ProviderRoundCompleted)]
    rounds = rounds_of(told)
    assert (len(completed), len(rounds), len(server.requests)) == (3, 3, 3)
    for event, entry in zip(completed, rounds, strict=True):
        timeline = event.timeline
        assert timeline is not None
        assert timeline == entry.spoke.timeline
        assert timeline.winning_model_ref == line.ref
        (attempt,) = timeline.attempts
        assert attempt.outcome is AttemptOutcome.SUCCEEDED
        assert attempt.token_usage == entry.spoke.usage == event.token_usage
        assert event.token_usage.input_tokens > 0
        assert attempt.transport_diagnostics is not None
        assert attempt.transport_diagnostics.url == line.url
        assert event.provider_started_at <= attempt.started_at
        assert attempt.completed_at <= event.provider_completed_at
        assert event.context_build_ms >= 0
        assert event.provider_round_ms >= attempt.duration_ms
        assert "noted" not in repr(event)  # telemetry, not words
    spent = [event.token_usage.total_tokens for event in completed]
    assert told.result.token_usage.total_tokens == sum(spent)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", WIRES)
async def test_calls_nobody_can_carry_out_are_answered_and_the_conversation_goes_on(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    async with (
        open_wire_server(MISTAKES) as server,
        open_home(tmp_path, line_to(server, kind, stream=stream)) as host,
    ):
        told = await run_in(host, "try something")
    assert told.result.failure_artifact is None
    assert told.result.final_text == "I shall do without."
    assert len(server.requests) == 3


@pytest.mark.requirement("provider-http:made-up-names-do-no-harm")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_name_the_model_made_up_does_not_spoil_the_conversation(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with (
        open_wire_server(MADE_UP) as server,
        open_home(tmp_path, line_to(server, kind)) as host,
    ):
        told = await run_in(host, "try something")
    assert told.result.failure_artifact is None
    assert told.result.final_text == "One after the other, then."


@pytest.mark.requirement("provider-http:silence-behind-results-ends-the-turn")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_model_that_has_nothing_to_add_to_its_results_is_done(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    async with (
        open_wire_server(
            SILENT, faults=[FINE, Fault(twists=(AnswerFault.EMPTY_CONTENT,))]
        ) as server,
        open_home(tmp_path, line_to(server, kind, stream=stream)) as host,
    ):
        told = await run_in(host, "look")
        again = await run_in(host, "look again")
    assert told.result.failure_artifact is None
    assert (told.result.final_status, told.result.final_text) == (FinalStatus.COMPLETED, "I look.")
    assert again.result.failure_artifact is None


FAILING = {
    "a wrong key": (
        Fault(instead=Refuse(status=401)),
        (FailureCategory.TRANSPORT, "auth_rejected", 401),
        "credentials",
    ),
    "an unknown model": (
        Fault(instead=Refuse(status=404, code="model_not_found", message="no such model")),
        (FailureCategory.PROTOCOL, "request_rejected", 404),
        "thinker-1",
    ),
    "a page": (
        Fault(instead=Raw(headers={"content-type": "text/html"}, body=b"<html>hi</html>")),
        (FailureCategory.PROTOCOL, "invalid_response", 200),
        "base URL",
    ),
    "huge arguments": (
        Fault(twists=(AnswerFault.HUGE_ARGUMENTS,)),
        (FailureCategory.PROTOCOL, "invalid_response", 200),
        None,
    ),
    "a conversation that is too long": (
        Fault(instead=Refuse(status=400, code="context_length_exceeded", message="too long")),
        (FailureCategory.PROTOCOL, "context_length_exceeded", 400),
        None,
    ),
}


@pytest.mark.requirement("provider-retry:timeline-on-record")
@pytest.mark.parametrize(("fault", "shows", "hint"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("kind", WIRES)
async def test_a_failure_is_told_to_the_operator(
    tmp_path: Path,
    kind: TransportKind,
    fault: Fault,
    shows: tuple[FailureCategory, str, int],
    hint: str | None,
) -> None:
    async with open_wire_server(WORK, faults=[fault]) as server:
        line = line_to(server, kind)
        told = await run_on(server, tmp_path, kind, "please")
    assert len(server.requests) == 1
    failure = told.result.failure_artifact
    assert failure is not None
    assert (failure.category, failure.kind, failure.status) == shows
    assert (failure.provider, failure.model_ref) == (line.provider, line.ref)
    assert hint is None or hint in (failure.recovery_hint or "")
    brief = told.briefs[-1]
    assert (brief.kind, brief.failure) == (BriefKind.FAILURE, failure)
    assert failure.summary in brief.text
    assert (failure.recovery_hint or "") in brief.text
    (error,) = (e for e in told.events if isinstance(e, RuntimeErrorRecorded))
    entries = [entry.data for turn in told.turns for entry in turn.entries]
    (noted,) = (data for data in entries if isinstance(data, RuntimeFailure))
    assert error.failure == noted.failure == failure
    assert error.timeline is not None
    assert error.timeline == noted.timeline
    (attempt,) = error.timeline.attempts
    assert (attempt.failure_kind, attempt.outcome) == (
        failure.kind,
        AttemptOutcome.FAIL_FAST_ABORTED,
    )


@pytest.mark.parametrize("kind", WIRES)
async def test_a_used_up_account_puts_the_turn_off(tmp_path: Path, kind: TransportKind) -> None:
    fault = usage_limited(resets_in_seconds=7_200)
    async with open_wire_server(WORK, faults=[fault]) as server:
        told = await run_on(server, tmp_path, kind, "please")
    assert told.result.final_status is FinalStatus.WAITING
    assert len(server.requests) == 1
    (put_off,) = (e for e in told.events if isinstance(e, ProviderDeferred))
    (ended,) = (e for e in told.events if isinstance(e, TurnEnded))
    assert ended.terminal is TerminalKind.DEFERRED
    assert put_off.timeline is not None
    (attempt,) = put_off.timeline.attempts
    assert (put_off.until - attempt.completed_at).total_seconds() == 7_200
    assert put_off.failure.kind == "usage_limit_reached"


async def test_a_home_with_a_fallback_answers_with_it(tmp_path: Path) -> None:
    locked = Fault(instead=Refuse(status=403))
    async with (
        open_wire_server(WORK, otherwise=locked) as server,
        open_wire_server(WORK) as other,
    ):
        lines = line_to(server, MESSAGES), line_to(other, CHAT, provider="backup")
        async with open_home(tmp_path, *lines) as host:
            told = await run_in(host, "please")
    assert told.result.final_status is FinalStatus.COMPLETED
    for timeline in told.result.provider_attempt_timeline:
        assert [each.model_ref for each in timeline.attempts] == [line.ref for line in lines]
        assert (timeline.requested_model_ref, timeline.winning_model_ref) == (
            lines[0].ref,
            lines[1].ref,
        )
    assert len(told.result.provider_attempt_timeline) == 3
