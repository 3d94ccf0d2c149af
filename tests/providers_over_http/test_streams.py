"""Streamed answers on every wire: whole in any pieces, refused when broken, cut when silent."""

from pathlib import Path

import anyio
import pytest

from holon.adapters.providers import wire_answer
from holon.adapters.providers.http import reply
from holon.adapters.providers.scripted.script import Script, ScriptedCall, ScriptedRound
from holon.model.limits import ANSWER_TEXT_BYTES_MAX
from holon.model.providers.attempts import ExchangeStage
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import TextBlock, ToolUseBlock, text_of
from holon.model.turns.turn import CallGrew, ModelAnswered, ModelFailed, StopReason, ThinkingGrew
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
    MESSAGES,
    RESPONSES,
    WIRES,
    line_to,
    open_switchboard,
)
from tests.support.wire_server.faults import AnswerFault, Fault, Gate, silent_stream
from tests.support.wire_server.server import open_wire_server
from tests.support.wire_server.wire_answer import HUGE_TEXT_BYTES

TEXT = "Fünf große Bären — 熊熊熊 — gehen über die Brücke. 🐻 " * 60
SCRIPT = Script(
    rounds=(
        ScriptedRound(
            thinking="How many bears?",
            text=TEXT,
            calls=(ScriptedCall(name="Enqueue", input={"text": "zähle 🐻 nach"}),),
        ),
    )
)
# Where a stream has said some of its words and not all of them, by wire.
AMID = {RESPONSES: 6_000, CODEX: 6_000, CHAT: 3_500, MESSAGES: 3_500}
HEAD, BODY = ExchangeStage.RESPONSE_HEAD, ExchangeStage.RESPONSE_BODY

BROKEN_OFF = Failure(
    kind="connection", stage=BODY, status=200, retryable=True, flags=frozenset({"is_body"})
)
SILENT = Failure(
    kind="timeout",
    stage=BODY,
    status=200,
    retryable=True,
    flags=frozenset({"is_timeout", "is_body"}),
)
UNREADABLE = Failure(
    kind="invalid_response",
    stage=ExchangeStage.DECODE,
    status=200,
    retryable=False,
    flags=frozenset({"is_decode"}),
)


def check_whole(spoke: ModelAnswered) -> None:
    assert text_of(spoke.blocks) == TEXT
    (use,) = (block for block in spoke.blocks if isinstance(block, ToolUseBlock))
    assert (use.name, use.input) == ("Enqueue", {"text": "zähle 🐻 nach"})
    assert spoke.stop_reason is StopReason.TOOL_USE


@pytest.mark.parametrize("cut_at", [1, 40, 300, 700, 1_500, 2_500, 3_500])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_stream_that_is_cut_is_asked_for_again(
    tmp_path: Path, kind: TransportKind, cut_at: int
) -> None:
    fault = Fault(cut_at_byte=cut_at, reset=cut_at == 1_500)
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, kind, stream=True)
        async with open_switchboard(tmp_path, line) as board:
            spoke = await board.succeed()
    check_whole(spoke)
    assert spoke.timeline is not None
    cut, won = spoke.timeline.attempts
    in_head = cut_at < 100
    early = Failure(kind="connection", stage=HEAD, retryable=True, got_head=False)
    check_failed(cut, early if in_head else BROKEN_OFF, line, number=1, outcome=RETRYING)
    check_succeeded(won, line, number=2)
    check_waits(spoke.timeline, board.clock)
    assert board.text_grown.endswith(TEXT)


@pytest.mark.parametrize("cut_at", [200, 3_500])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_stream_that_is_always_cut_is_given_up(
    tmp_path: Path, kind: TransportKind, cut_at: int
) -> None:
    async with open_wire_server(SCRIPT, otherwise=Fault(cut_at_byte=cut_at)) as server:
        line = line_to(server, kind, stream=True)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert failed.timeline is not None
    assert len(failed.timeline.attempts) == 3
    for number, attempt in enumerate(failed.timeline.attempts, 1):
        outcome = EXHAUSTED if number == 3 else RETRYING
        check_failed(attempt, BROKEN_OFF, line, number=number, outcome=outcome)


@pytest.mark.requirement("provider-http:timeouts-are-retryable")
@pytest.mark.parametrize("after_bytes", [0, 250, 3_500])
async def test_a_stream_that_falls_silent_is_cut_and_asked_for_again(
    tmp_path: Path, after_bytes: int
) -> None:
    faults = [silent_stream(after_bytes=after_bytes) for _ in range(3 * len(WIRES))]
    async with open_wire_server(SCRIPT, faults=faults) as server:
        lines = [line_to(server, kind, stream=True) for kind in WIRES]
        async with open_switchboard(
            tmp_path, *lines, fallback_disabled=True, stream_idle_ms=700
        ) as board:
            came = await board.ask_every_line()
        for request in server.requests:
            await request.left.wait()
    for line, failed in came.items():
        assert isinstance(failed, ModelFailed)
        assert failed.timeline is not None
        for number, attempt in enumerate(failed.timeline.attempts, 1):
            outcome = EXHAUSTED if number == 3 else RETRYING
            check_failed(attempt, SILENT, line, number=number, outcome=outcome)
        assert len(failed.timeline.attempts) == 3
        assert "took too long" in failed.failure.summary


async def test_a_silence_is_recovered_from(tmp_path: Path) -> None:
    fault = silent_stream(after_bytes=AMID[CHAT])
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, CHAT, stream=True)
        async with open_switchboard(tmp_path, line, stream_idle_ms=1_000) as board:
            spoke = await board.succeed()
    check_whole(spoke)
    assert spoke.timeline is not None
    check_failed(spoke.timeline.attempts[0], SILENT, line, number=1, outcome=RETRYING)
    check_succeeded(spoke.timeline.attempts[1], line, number=2)


@pytest.mark.requirement("provider-retry:fail-fast-failures")
@pytest.mark.parametrize(
    "twist", [AnswerFault.MISSING_TERMINAL, AnswerFault.DONE_EARLY, AnswerFault.MALFORMED_JSON]
)
@pytest.mark.parametrize("kind", WIRES)
async def test_a_stream_that_ends_before_its_answer_is_unreadable(
    tmp_path: Path, kind: TransportKind, twist: AnswerFault
) -> None:
    async with open_wire_server(SCRIPT, faults=[Fault(twists=(twist,))]) as server:
        line = line_to(server, kind, stream=True)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert failed.timeline is not None
    (attempt,) = failed.timeline.attempts
    check_failed(attempt, UNREADABLE, line, number=1, outcome=ABORTED)
    assert (failed.failure.kind, failed.failure.status) == ("invalid_response", 200)
    assert (len(server.requests), board.clock.waits_ms) == (1, [])


@pytest.mark.parametrize("chunk_bytes", [1, 7])
@pytest.mark.parametrize("kind", WIRES)
async def test_the_pieces_a_stream_comes_in_change_nothing(
    tmp_path: Path, kind: TransportKind, chunk_bytes: int
) -> None:
    script = Script(rounds=(ScriptedRound(text="Bären 🐻 überall — 熊."),))
    fault = Fault(
        chunk_bytes=chunk_bytes, twists=(AnswerFault.CRLF_LINES, AnswerFault.UNKNOWN_EVENTS)
    )
    async with open_wire_server(script, faults=[fault]) as server:
        line = line_to(server, kind, stream=True)
        async with open_switchboard(tmp_path, line) as board:
            spoke = await board.succeed()
    assert spoke.blocks == (TextBlock(text="Bären 🐻 überall — 熊."),)
    assert board.text_grown == "Bären 🐻 überall — 熊."
    assert spoke.timeline is not None
    check_succeeded(spoke.timeline.attempts[0], line, number=1)


async def test_events_told_twice(tmp_path: Path) -> None:
    """Items have names on two wires and blocks an order on a third; chunks have neither."""
    said = {}
    async with open_wire_server(
        SCRIPT, otherwise=Fault(twists=(AnswerFault.DUPLICATE_EVENTS,))
    ) as server:
        for kind in WIRES:
            line = line_to(server, kind, stream=True)
            async with open_switchboard(tmp_path / kind, line) as board:
                said[kind] = await board.ask()
    for kind in (RESPONSES, CODEX):
        spoke = said[kind]
        assert isinstance(spoke, ModelAnswered)
        check_whole(spoke)
    refused = said[MESSAGES]
    assert not isinstance(refused, ModelAnswered)
    assert refused.failure.kind == "invalid_response"
    doubled = said[CHAT]
    assert isinstance(doubled, ModelAnswered)
    assert len(text_of(doubled.blocks)) == 2 * len(TEXT)


@pytest.mark.parametrize("kind", WIRES)
async def test_words_are_heard_before_the_answer_is_whole(
    tmp_path: Path, kind: TransportKind
) -> None:
    gate = Gate()
    fault = Fault(body_gate=gate, gate_at_byte=AMID[kind])
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, kind, stream=True)
        async with open_switchboard(tmp_path, line) as board:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(board.ask)
                    await gate.reached.wait()
                    await board.first_word.wait()
                    assert board.came == []
                    assert TEXT.startswith(board.text_grown)
                    assert board.text_grown != TEXT
                    gate.open()
    (spoke,) = board.came
    assert isinstance(spoke, ModelAnswered)
    check_whole(spoke)
    assert board.text_grown == TEXT
    thought = [each.text for each in board.grown if isinstance(each, ThinkingGrew)]
    assert "".join(thought) in ("", "How many bears?")
    calls = [each for each in board.grown if isinstance(each, CallGrew)]
    assert {each.name for each in calls} == {"Enqueue"}
    assert "zähle" in "".join(each.fragment for each in calls)


@pytest.mark.requirement("big-answer:bounded-before-it-is-stored")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", WIRES)
async def test_ten_megabytes_are_an_answer_that_is_cut_to_the_output_limit(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    fault = Fault(twists=(AnswerFault.HUGE_TEXT,))
    async with open_wire_server(SCRIPT, faults=[fault]) as server:
        line = line_to(server, kind, stream=stream)
        async with open_switchboard(tmp_path, line, record_dir=None) as board:
            spoke = await board.succeed()
            board.came.clear()  # nothing in it but one letter
            board.grown.clear()
    kept = text_of(spoke.blocks)
    beginning, _, end = kept.partition("\n[…")
    assert len(kept) <= ANSWER_TEXT_BYTES_MAX < HUGE_TEXT_BYTES
    assert beginning == "x" * len(beginning) != ""
    assert end.endswith("x")
    assert "bytes left out" in end


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", WIRES)
async def test_an_answer_beyond_the_cap_is_refused_with_a_sentence(
    tmp_path: Path, kind: TransportKind, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply, "PROVIDER_ANSWER_BYTES_MAX", 2_000)
    monkeypatch.setattr(reply, "PROVIDER_STREAM_BYTES_MAX", 2_000)
    async with open_wire_server(SCRIPT) as server:
        line = line_to(server, kind, stream=stream)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    shows = Failure(
        kind="invalid_response",
        stage=BODY,
        status=200,
        retryable=False,
        flags=frozenset({"is_body"}),
    )
    assert failed.timeline is not None
    (attempt,) = failed.timeline.attempts
    check_failed(attempt, shows, line, number=1, outcome=ABORTED)
    assert failed.failure.summary == "the answer has more than 2000 bytes"


@pytest.mark.parametrize("kind", WIRES)
async def test_what_is_kept_of_a_stream_is_bounded_too(
    tmp_path: Path, kind: TransportKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_answer, "PROVIDER_ANSWER_CHARS_MAX", 2_000)
    async with open_wire_server(SCRIPT) as server:
        line = line_to(server, kind, stream=True)
        async with open_switchboard(tmp_path, line) as board:
            failed = await board.fail()
    assert failed.failure.kind == "invalid_response"
    assert failed.failure.summary == "the answer has more than 2000 characters"
