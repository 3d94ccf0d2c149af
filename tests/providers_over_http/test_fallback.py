"""Fallback from one model to the next: their order, and the timeline."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedCall, ScriptedRound
from holon.model.events.briefs import FailureCategory
from holon.model.providers.attempts import ExchangeStage, TokenUsage
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    UserMessage,
    tool_uses_of,
)
from tests.providers_over_http.expected import (
    ABORTED,
    EXHAUSTED,
    RETRYING,
    Failure,
    check_failed,
    check_succeeded,
    check_waits,
)
from tests.providers_over_http.switchboard import (
    CHAT,
    CODEX,
    HELLO,
    MESSAGES,
    RESPONSES,
    WIRES,
    Line,
    Switchboard,
    line_to,
    open_switchboard,
)
from tests.support.wire_server.faults import AnswerFault, Fault, Refuse
from tests.support.wire_server.server import WireServer, open_wire_server

FIRST = Script(rounds=(ScriptedRound(text="The first model speaks."),))
SECOND = Script(rounds=(ScriptedRound(text="The second model speaks."),))
BODY, SELECTION = ExchangeStage.RESPONSE_BODY, ExchangeStage.SELECTION

BROKEN = Fault(instead=Refuse(status=503))
LOCKED = Fault(instead=Refuse(status=401))
TOO_LONG = Fault(instead=Refuse(status=400, code="context_length_exceeded", message="Too long."))
SERVER_ERROR = Failure(kind="server_error", stage=BODY, status=503, retryable=True)
AUTH_REJECTED = Failure(kind="auth_rejected", stage=BODY, status=401, retryable=False)
UNSUPPORTED = Failure(
    kind="unsupported_transport", stage=SELECTION, retryable=False, got_head=False, asked=False
)
PAIRS = [(a, b) for a in WIRES for b in (CHAT, MESSAGES, RESPONSES, CODEX) if a is not b]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two models on two servers, and the switchboard that knows both."""

    first: WireServer
    second: WireServer
    a: Line
    b: Line
    board: Switchboard


@asynccontextmanager
async def open_pair(
    home: Path,
    kinds: tuple[TransportKind, TransportKind],
    *,
    first: tuple[Fault, ...] = (),
    second: tuple[Fault, ...] = (),
    transport: str | None = None,
    effort: str | None = None,
    scripts: tuple[Script, Script] = (FIRST, SECOND),
) -> AsyncIterator[Pair]:
    async with (
        open_wire_server(scripts[0], faults=first) as one,
        open_wire_server(scripts[1], faults=second) as two,
    ):
        a = line_to(one, kinds[0], transport=transport, effort=effort)
        b = line_to(two, kinds[1], provider="backup")
        async with open_switchboard(home, a, b) as board:
            yield Pair(first=one, second=two, a=a, b=b, board=board)


@pytest.mark.requirement("provider-retry:fallback-after-retries")
@pytest.mark.requirement("provider-retry:usage-per-attempt")
@pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: "-".join(kinds))
async def test_when_the_retries_of_one_model_run_out_the_next_answers(
    tmp_path: Path, kinds: tuple[TransportKind, TransportKind]
) -> None:
    async with open_pair(tmp_path, kinds, first=(BROKEN,) * 3) as pair:
        spoke = await pair.board.succeed()
    assert spoke.blocks == (TextBlock(text="The second model speaks."),)
    assert (len(pair.first.requests), len(pair.second.requests)) == (3, 1)
    timeline = spoke.timeline
    assert timeline is not None
    *failed, won = timeline.attempts
    for number, attempt in enumerate(failed, 1):
        last = number == 3
        outcome = EXHAUSTED if last else RETRYING
        check_failed(
            attempt, SERVER_ERROR, pair.a, number=number, outcome=outcome, to_fallback=last
        )
    check_succeeded(won, pair.b, number=1)
    check_waits(timeline, pair.board.clock)
    assert timeline.requested_model_ref == pair.a.ref
    assert timeline.active_model_ref == timeline.winning_model_ref == pair.b.ref
    assert timeline.aggregated_token_usage == won.token_usage == spoke.usage
    # Each model was sent its own secret and nobody else's.
    for server, own, other in ((pair.first, pair.a, pair.b), (pair.second, pair.b, pair.a)):
        sent = "".join(f"{request.headers} {request.body!r}" for request in server.requests)
        assert own.secret in sent
        assert other.secret not in sent


@pytest.mark.requirement("provider-retry:fallback-after-fail-fast")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_model_that_refuses_is_left_for_the_next_at_once(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with open_pair(tmp_path, (kind, CHAT), first=(LOCKED,)) as pair:
        spoke = await pair.board.succeed()
    assert spoke.timeline is not None
    lost, won = spoke.timeline.attempts
    check_failed(lost, AUTH_REJECTED, pair.a, number=1, outcome=ABORTED, to_fallback=True)
    check_succeeded(won, pair.b, number=1)
    assert pair.board.clock.waits_ms == []


@pytest.mark.requirement("provider-retry:fail-closed-selection")
async def test_a_model_behind_an_unknown_transport_is_passed_over(tmp_path: Path) -> None:
    async with open_pair(tmp_path, (CHAT, MESSAGES), transport="carrier_pigeon") as pair:
        spoke = await pair.board.succeed()
    assert pair.first.requests == []
    timeline = spoke.timeline
    assert timeline is not None
    lost, won = timeline.attempts
    check_failed(lost, UNSUPPORTED, pair.a, number=1, outcome=ABORTED, to_fallback=True)
    check_succeeded(won, pair.b, number=1)
    assert lost.transport_diagnostics is not None
    assert "carrier_pigeon" in lost.transport_diagnostics.source_chain[0]
    assert (timeline.requested_model_ref, timeline.winning_model_ref) == (pair.a.ref, pair.b.ref)


@pytest.mark.requirement("provider-retry:context-length-ends-the-turn")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_conversation_that_is_too_long_is_sent_to_nobody_else(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with open_pair(tmp_path, (kind, CHAT), first=(TOO_LONG,)) as pair:
        failed = await pair.board.fail()
    assert (len(pair.first.requests), pair.second.requests) == (1, [])
    shows = Failure(kind="context_length_exceeded", stage=BODY, status=400, retryable=False)
    assert failed.timeline is not None
    (attempt,) = failed.timeline.attempts
    check_failed(attempt, shows, pair.a, number=1, outcome=ABORTED)
    assert failed.timeline.winning_model_ref is None
    assert failed.failure.kind == "context_length_exceeded"
    assert failed.failure.category is FailureCategory.PROTOCOL
    assert failed.retry_at is None


@pytest.mark.requirement("provider-retry:exhaustion-is-visible")
@pytest.mark.parametrize("kind", WIRES)
async def test_when_nobody_answers_the_failure_names_everybody(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with open_pair(tmp_path, (kind, CHAT), first=(BROKEN,) * 3, second=(LOCKED,)) as pair:
        failed = await pair.board.fail()
    timeline = failed.timeline
    assert timeline is not None
    assert [(each.model_ref, each.outcome) for each in timeline.attempts] == [
        (pair.a.ref, RETRYING),
        (pair.a.ref, RETRYING),
        (pair.a.ref, EXHAUSTED),
        (pair.b.ref, ABORTED),
    ]
    assert [each.advanced_to_fallback for each in timeline.attempts] == [False, False, True, False]
    assert (timeline.requested_model_ref, timeline.active_model_ref) == (pair.a.ref, pair.b.ref)
    assert (timeline.winning_model_ref, timeline.aggregated_token_usage) == (None, None)
    failure = failed.failure
    assert "none of 2 models answered" in failure.summary
    assert f"{pair.a.ref}: server_error after 3 attempts" in failure.summary
    assert f"{pair.b.ref}: auth_rejected" in failure.summary
    assert (failure.kind, failure.model_ref, failure.status) == ("auth_rejected", pair.b.ref, 401)
    assert failure.metadata["candidates"] == f"{pair.a.ref}, {pair.b.ref}"
    assert failure.metadata["attempt_count"] == "4"


@pytest.mark.requirement("provider-retry:fallback-belongs-to-its-round")
@pytest.mark.parametrize("kind", WIRES)
async def test_the_next_round_begins_at_the_first_model_again(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with open_pair(tmp_path, (kind, CHAT), first=(LOCKED,)) as pair:
        fallen_back = await pair.board.succeed()
        again = await pair.board.succeed()
    assert fallen_back.blocks == (TextBlock(text="The second model speaks."),)
    assert again.blocks == (TextBlock(text="The first model speaks."),)
    assert again.timeline is not None
    (only,) = again.timeline.attempts
    check_succeeded(only, pair.a, number=1)
    assert again.timeline.requested_model_ref == again.timeline.winning_model_ref == pair.a.ref


@pytest.mark.requirement("provider-retry:usage-per-attempt")
@pytest.mark.parametrize("kind", WIRES)
async def test_tokens_of_an_attempt_in_vain_are_counted_too(
    tmp_path: Path, kind: TransportKind
) -> None:
    spent = TokenUsage(input_tokens=70, output_tokens=3)
    empty = Script(rounds=(ScriptedRound(text="x", usage=spent),))
    faults = (Fault(twists=(AnswerFault.EMPTY_CONTENT,)),)
    scripts = (empty, SECOND)
    async with open_pair(tmp_path, (kind, CHAT), first=faults, scripts=scripts) as pair:
        spoke = await pair.board.succeed()
    timeline = spoke.timeline
    assert timeline is not None
    lost, won = timeline.attempts
    assert lost.token_usage is not None
    assert won.token_usage is not None
    assert (lost.token_usage.input_tokens, lost.token_usage.output_tokens) == (70, 3)
    assert timeline.aggregated_token_usage == lost.token_usage.plus(won.token_usage)


@pytest.mark.parametrize(
    "kinds", [(MESSAGES, CHAT), (RESPONSES, MESSAGES), (CODEX, RESPONSES), (MESSAGES, MESSAGES)]
)
async def test_what_one_model_thought_is_not_sent_to_another(
    tmp_path: Path, kinds: tuple[TransportKind, TransportKind]
) -> None:
    effort = None if kinds[0] is MESSAGES else "low"  # what makes these wires hand out reasoning
    line = ScriptedRound(
        thinking="a private thought",
        text="Let me look.",
        calls=(ScriptedCall(name="Enqueue", input={"text": "later"}),),
    )
    script = Script(rounds=(line, ScriptedRound(text="The first model goes on.")))
    async with open_pair(tmp_path, kinds, effort=effort, scripts=(script, SECOND)) as pair:
        thought = await pair.board.succeed()
        (use,) = tool_uses_of(thought.blocks)
        grown = (
            *HELLO,
            AssistantMessage(blocks=thought.blocks),
            UserMessage(blocks=(ToolResultBlock(call_id=use.call_id, content="done"),)),
        )
        pair.first.plan(LOCKED)
        spoke = await pair.board.succeed(grown)
        itself = await pair.board.succeed(grown)
    assert any(isinstance(block, ThinkingBlock) for block in thought.blocks)
    assert spoke.timeline is not None
    assert spoke.timeline.winning_model_ref == pair.b.ref
    assert itself.blocks == (TextBlock(text="The first model goes on."),)
    (sent,) = pair.second.requests
    assert b"private thought" not in sent.body
    assert b"sealed" not in sent.body
    assert b"Let me look." in sent.body
    assert b"later" in sent.body
    # The one who thought it gets it back.
    assert b"private thought" in pair.first.requests[-1].body
