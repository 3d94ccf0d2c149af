"""What a provider read from its cache, as the attempts of every wire record it."""

from pathlib import Path

import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.providers.attempts import TokenUsage
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import AssistantMessage, TextBlock, UserMessage
from holon.model.turns.turn import ModelAnswered
from tests.providers_over_http.switchboard import WIRES, line_to, open_switchboard
from tests.support.wire_server.server import open_wire_server

SCRIPT = Script(rounds=(ScriptedRound(text="I see."), ScriptedRound(text="Go on.")))
STORY = (UserMessage(blocks=(TextBlock(text="a long story " * 400),)),)
OTHER_STORY = (UserMessage(blocks=(TextBlock(text="a new story " * 400),)),)


def used(spoke: ModelAnswered) -> TokenUsage:
    """What the attempt that was answered says it used."""
    assert spoke.timeline is not None
    [attempt] = spoke.timeline.attempts
    assert attempt.token_usage is not None
    return attempt.token_usage


@pytest.mark.requirement("provider-scripted:cache-reads-are-counted")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", WIRES)
async def test_what_was_sent_before_is_recorded_as_read_from_the_cache(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    async with (
        open_wire_server(SCRIPT) as server,
        open_switchboard(tmp_path, line_to(server, kind, stream=stream)) as board,
    ):
        spoke = await board.succeed(STORY)
        first = used(spoke)
        answer = AssistantMessage(blocks=spoke.blocks)
        again = (*STORY, answer, UserMessage(blocks=(TextBlock(text="and then?"),)))
        second = used(await board.succeed(again))
        other = used(await board.succeed(OTHER_STORY))
    assert first.cache_read_tokens == 0
    assert second.cache_read_tokens in range(first.input_tokens - 1, second.input_tokens)
    assert other.cache_read_tokens > 1_000, "the tools and what else lasts"
    assert other.input_tokens - other.cache_read_tokens > 1_000, "another story is read anew"
    rounds = (first, second, other)
    read = sum(each.cache_read_tokens for each in rounds)
    share = read / sum(each.input_tokens for each in rounds)
    assert share == pytest.approx(server.cached_share, abs=0.001)
