"""The local provider with a stand-in for the engine: errors, cancellation, and what is heard."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from holon.adapters.providers.local import engine as engine_module
from holon.adapters.providers.local.engine import LocalEngine
from holon.adapters.providers.local.prompt import SMALL
from holon.adapters.providers.local.provider import LocalProvider
from holon.model.providers.attempts import (
    ContextTooLongError,
    ModelUnavailableError,
    ProviderError,
    ProviderOverloadedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.providers.models import ModelRef
from holon.model.turns.conversation import TextBlock, ToolUseBlock
from holon.model.turns.turn import AnswerProgress, StopReason, TextGrew
from holon.model.values import CallId
from holon.ports.providers import ignore_progress
from tests.adapters.providers.local.local_requests import called, request, returned, said, user

Event = dict[str, Any]
TOO_LONG = {"error": {"type": "exceed_context_size_error", "message": "too long"}}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
CALL = '{"tool": "ExecCommand", "arguments": {"cmd": "date"}}'


class FakeServer:
    """Plays events, one list for each request."""

    def __init__(self, *plays: list[Event] | Exception) -> None:
        self.plays = list(plays)
        self.bodies: list[dict[str, Any]] = []

    def handle_chat_completions(self, body: dict[str, Any], heard: Callable[[Any], bool]) -> object:
        """Tell the events of the next play."""
        self.bodies.append(body)
        play = self.plays.pop(0)
        if isinstance(play, Exception):
            raise play
        for event in play:
            if heard(event):
                break
        return None


def writing(*pieces: str, finish: str = "stop") -> list[Event]:
    """Return the events of a text."""
    texts = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    progress: list[Event] = [{"choices": [], "prompt_progress": {"processed": 3}}]
    ending: list[Event] = [
        {"choices": [{"delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": USAGE},
    ]
    return [*progress, *texts, *ending]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    fake = FakeServer()
    monkeypatch.setattr(engine_module, "_load", lambda weights, **options: fake)
    return fake


@pytest.fixture
def provider(server: FakeServer) -> LocalProvider:
    engine = LocalEngine(Path("w.gguf"), threads=1, context_tokens=SMALL.context_tokens)
    ref = ModelRef(provider="local", model="smollm2-135m")
    return LocalProvider(ref, engine=engine, profile=SMALL)


async def test_words_are_heard_as_they_are_written(
    provider: LocalProvider, server: FakeServer
) -> None:
    server.plays = [writing("Par", "is.")]
    heard: list[AnswerProgress] = []
    answer = await provider.answer(request(user("capital?")), heard.append)
    assert answer.blocks == (TextBlock(text="Paris."),)
    assert answer.stop_reason is StopReason.END_TURN
    assert answer.usage == TokenUsage(input_tokens=9, output_tokens=4, cache_read_tokens=5)
    assert heard == [TextGrew(text="Par"), TextGrew(text="is.")]
    assert answer.diagnostics is not None
    assert answer.diagnostics.model_ref == "local/smollm2-135m"


async def test_a_call_is_lifted_and_not_heard(provider: LocalProvider, server: FakeServer) -> None:
    server.plays = [writing(CALL[:9], CALL[9:])]
    heard: list[AnswerProgress] = []
    answer = await provider.answer(request(user("run date")), heard.append)
    use = ToolUseBlock(call_id=CallId("local_call_1"), name="ExecCommand", input={"cmd": "date"})
    assert (answer.blocks, answer.stop_reason) == ((use,), StopReason.TOOL_USE)
    assert heard == []
    assert "call0" in server.bodies[0]["grammar"]


async def test_call_ids_follow_from_the_round_and_never_repeat(
    provider: LocalProvider, server: FakeServer
) -> None:
    server.plays = [writing(CALL), writing(CALL)]
    asked = request(user("x"), called("local_call_2", "y"), returned("local_call_2"), user("z"))
    ids = [(await provider.answer(asked, ignore_progress)).blocks[0] for _ in range(2)]
    assert [use.call_id for use in ids if isinstance(use, ToolUseBlock)] == ["local_call_3"] * 2


async def test_after_its_call_a_small_model_is_kept_to_words(
    provider: LocalProvider, server: FakeServer
) -> None:
    server.plays = [writing("It printed 42.")]
    await provider.answer(request(user("x"), called("c", "y"), returned("c")), ignore_progress)
    assert server.bodies[0]["grammar"].startswith("root ::= [^{")


async def test_without_tools_a_brace_is_just_a_brace(
    provider: LocalProvider, server: FakeServer
) -> None:
    server.plays = [writing("{", '"a": 1}')]
    heard: list[AnswerProgress] = []
    answer = await provider.answer(request(user("JSON, please"), tools=()), heard.append)
    assert answer.blocks == (TextBlock(text='{"a": 1}'),)
    assert len(heard) == 2
    assert "grammar" not in server.bodies[0]


async def test_an_answer_cut_off_says_so(provider: LocalProvider, server: FakeServer) -> None:
    server.plays = [writing("and so on", finish="length"), writing(CALL[:20], finish="length")]
    answer = await provider.answer(request(user("x")), ignore_progress)
    assert answer.stop_reason is StopReason.MAX_TOKENS
    with pytest.raises(UnreadableResponseError, match="cut off"):
        await provider.answer(request(user("x")), ignore_progress)


async def test_a_chat_that_is_too_long_is_shown_shorter(
    provider: LocalProvider, server: FakeServer
) -> None:
    server.plays = [[TOO_LONG], [TOO_LONG], writing("ok")]
    old = [turn for n in range(8) for turn in (user("q" * 90), said("a"))]
    answer = await provider.answer(request(*old, user("newest")), ignore_progress)
    sizes = [len(body["messages"]) for body in server.bodies]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < sizes[0]
    assert answer.diagnostics is not None
    assert answer.diagnostics.notes[0].startswith("left out")


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        ([TOO_LONG], ContextTooLongError),
        ([{"error": {"type": "invalid_request_error", "message": "x"}}], RequestRejectedError),
        ([{"error": {"type": "server_error", "message": "x"}}], ProviderOverloadedError),
        (ValueError("no parser"), RequestRejectedError),
        (RuntimeError("broken"), RequestRejectedError),
        (writing(), UnreadableResponseError),
        (writing("  \n"), UnreadableResponseError),
        (writing("{nonsense"), UnreadableResponseError),
        (writing('{"tool": "ExecCommand"}'), UnreadableResponseError),
    ],
)
async def test_each_way_to_fail_has_its_kind(
    provider: LocalProvider,
    server: FakeServer,
    play: list[Event] | Exception,
    kind: type[ProviderError],
) -> None:
    server.plays = [play, play, play]
    with pytest.raises(kind) as raised:
        await provider.answer(request(user("x")), ignore_progress)
    assert type(raised.value) is kind
    assert raised.value.diagnostics is not None


async def test_cancelling_stops_the_worker_and_silences_it(
    provider: LocalProvider, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    begun = anyio.Event()

    def endless(body: dict[str, Any], heard: Callable[[Any], bool]) -> None:
        while not heard({"choices": [{"delta": {"content": "x"}}]}):
            pass
        stopped.set()

    monkeypatch.setattr(server, "handle_chat_completions", endless)
    heard: list[AnswerProgress] = []

    def hear(progress: AnswerProgress) -> None:
        heard.append(progress)
        begun.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(provider.answer, request(user("x")), hear)
        await begun.wait()
        tasks.cancel_scope.cancel()
    count = len(heard)
    assert await anyio.to_thread.run_sync(stopped.wait, 30)
    await anyio.lowlevel.checkpoint()
    assert len(heard) == count


async def test_an_engine_that_cannot_be_imported_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "require_engine", lambda: None)
    monkeypatch.setattr(engine_module, "ENGINE_PACKAGE", "holon_has_no_such_engine")
    engine = LocalEngine(Path("w.gguf"), threads=1, context_tokens=64)
    provider = LocalProvider(
        ModelRef(provider="local", model="/w.gguf"), engine=engine, profile=SMALL
    )
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        await provider.answer(request(user("x")), ignore_progress)
