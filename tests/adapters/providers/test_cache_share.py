"""Long conversations are cheap by construction: nearly everything that is sent was sent before.

Twenty turns of ten rounds each run through the real driver. Every request it makes is given fresh
turn-scoped text for each turn, lowered as the wire would send it, and judged by the provider's own
rule: OpenAI reads the longest prefix it has seen, Anthropic the longest one that ended at a marker.
"""

import re
from functools import cache
from itertools import pairwise

import msgspec
import pytest

from holon.adapters.providers.anthropic_messages import request as anthropic
from holon.adapters.providers.openai_chat import request as chat
from holon.adapters.providers.openai_responses import request as responses
from holon.adapters.providers.wire_request import Endpoint
from holon.model.limits import MINUTE_MS
from holon.model.providers.models import TransportKind
from holon.model.providers.prompt_frame import PromptBlock, PromptFrame, ProviderRequest, Stability
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import JsonValue
from holon.tools.registry import ToolRegistry
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house

pytestmark = pytest.mark.long

TURNS_COUNT, ROUNDS_PER_TURN_COUNT = 20, 10
SHARE_MIN = 0.95
MARK = b',"cache_control":{"type":"ephemeral"}'


class Look:
    """Tells a few hundred words, like most commands do."""

    spec = ToolSpec(name="Look", description="look", input_schema={"type": "object"})
    only_plans = True

    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Tell something that differs from call to call."""
        return ToolExecution(outcome=ToolOk(result={"seen": f"{scene.effect_id} " * 60}))


@cache
def the_requests() -> tuple[ProviderRequest, ...]:
    async def story(house: House) -> None:
        for number in range(TURNS_COUNT):
            await house.prompt(f"look around, please, for the {number}. time")
            await house.rest(MINUTE_MS)

    looks = (calls("Look", where=str(index)) for index in range(ROUNDS_PER_TURN_COUNT - 1))
    script = [rule("look around", *looks, says("That is what I saw."))]
    house = run_house(story, script=script, setup=Setup(tools=ToolRegistry((Look(),))))
    return tuple(_with_news(request) for request in house.model.requests)


def _with_news(request: ProviderRequest) -> ProviderRequest:
    """Give a request what prompt assembly adds for this turn alone."""
    assert request.turn_start is not None
    news = PromptBlock(
        text=f"news of turn {request.turn_start.message_index} " * 20,
        stability=Stability.TURN_SCOPED,
    )
    lasting = PromptBlock(text="how this house works " * 200, stability=Stability.STABLE)
    frame = msgspec.structs.replace(
        request.frame,
        system_blocks=(lasting,),
        context_blocks=(news, *request.frame.context_blocks),
    )
    return msgspec.structs.replace(request, frame=frame)


def endpoint(transport: TransportKind) -> Endpoint:
    return Endpoint(provider="p", model="m", transport=transport, base_url="http://127.0.0.1:1")


def anthropic_bodies(requests: tuple[ProviderRequest, ...] | None = None) -> list[bytes]:
    there = endpoint(TransportKind.ANTHROPIC_MESSAGES)
    memo = anthropic.RequestMemo(there)
    sent = the_requests() if requests is None else requests
    return [anthropic.lower(there, request, memo).body for request in sent]


def responses_bodies() -> list[bytes]:
    memo, there = responses.RequestMemo(), endpoint(TransportKind.OPENAI_RESPONSES)
    return [responses.lower(there, request, memo).body for request in the_requests()]


def chat_bodies() -> list[bytes]:
    memo, there = chat.RequestMemo(), endpoint(TransportKind.OPENAI_CHAT_COMPLETIONS)
    return [chat.lower(there, request, memo).body for request in the_requests()]


def share_by_prefix(bodies: list[bytes]) -> float:
    """What a provider reads from its cache that knows every prefix of earlier requests."""
    read = sum(_shared_bytes(before, body) for before, body in pairwise(bodies))
    return read / sum(map(len, bodies))


def _shared_bytes(one: bytes, other: bytes) -> int:
    """How far two bodies agree, by halving."""
    agree, differ = 0, min(len(one), len(other)) + 1
    while differ - agree > 1:
        middle = (agree + differ) // 2
        agree, differ = (middle, differ) if one[:middle] == other[:middle] else (agree, middle)
    return agree


def share_by_markers(bodies: list[bytes], *, blocks_back_max: int | None = None) -> float:
    """What a provider reads from its cache that keeps a prefix only where a marker ends it.

    Anthropic looks for such a prefix at each marker and a bounded number of blocks before it.
    """
    kept: set[bytes] = set()
    read = whole = 0
    for body in bodies:
        plain = body.replace(MARK, b"")
        ends = [found.start() for found in re.finditer(re.escape(MARK), body)]
        prefixes = [body[:end].replace(MARK, b"") for end in ends]
        assert 1 <= len(prefixes) <= 4
        hits = [prefix for prefix in kept if plain.startswith(prefix)]
        if blocks_back_max is not None:
            hits = [hit for hit in hits if _blocks_behind(hit, prefixes) <= blocks_back_max]
        read += max(map(len, hits), default=0)
        whole += len(plain)
        kept.update(prefixes)
    return read / whole


def _blocks_behind(hit: bytes, prefixes: list[bytes]) -> int:
    """How many blocks the nearest marker of the request stands behind a kept prefix."""
    behind = [prefix[len(hit) :] for prefix in prefixes if prefix.startswith(hit)]
    return min((gap.count(b'{"type":"') for gap in behind), default=1_000)


@pytest.mark.requirement("prompt-frame:continuation-keeps-the-frame")
def test_every_request_of_a_long_life_carries_the_same_frame() -> None:
    requests = the_requests()
    assert len(requests) == TURNS_COUNT * ROUNDS_PER_TURN_COUNT
    assert len({_lasting(request.frame) for request in requests}) == 1
    for first in range(0, len(requests), ROUNDS_PER_TURN_COUNT):
        turn = requests[first : first + ROUNDS_PER_TURN_COUNT]
        assert len({msgspec.json.encode(request.frame) for request in turn}) == 1


def _lasting(frame: PromptFrame) -> tuple[str, ...]:
    """What of a frame must not change from one turn to the next: its key and its lasting text."""
    assert frame.cache is not None
    blocks = (*frame.system_blocks, *frame.context_blocks)
    lasting = (block.text for block in blocks if block.stability is not Stability.TURN_SCOPED)
    return (frame.cache.prompt_cache_key, frame.system_prompt, *lasting)


@pytest.mark.parametrize("bodies", [responses_bodies, chat_bodies], ids=["responses", "chat"])
def test_openai_can_read_nearly_all_of_a_long_conversation_from_its_cache(bodies: object) -> None:
    assert callable(bodies)
    share = share_by_prefix(bodies())
    print(f"share of input bytes in the cache: {share:.1%}")
    assert share >= SHARE_MIN


def test_anthropic_can_read_nearly_all_of_a_long_conversation_from_its_cache() -> None:
    share = share_by_markers(anthropic_bodies())
    print(f"share of input bytes in the cache: {share:.1%}")
    assert share >= SHARE_MIN


def test_anthropic_finds_it_within_the_few_blocks_it_looks_back() -> None:
    plain = tuple(
        msgspec.structs.replace(
            request, frame=msgspec.structs.replace(request.frame, context_blocks=())
        )
        for request in the_requests()
    )
    share = share_by_markers(anthropic_bodies(plain), blocks_back_max=20)
    print(f"share of input bytes in the cache: {share:.1%}")
    assert share >= SHARE_MIN


@pytest.mark.parametrize(
    "bodies", [responses_bodies, anthropic_bodies], ids=["responses", "anthropic"]
)
def test_within_a_turn_each_request_begins_with_the_bytes_of_the_one_before(
    bodies: object,
) -> None:
    assert callable(bodies)
    plain: list[bytes] = [body.replace(MARK, b"") for body in bodies()]
    for turn in range(TURNS_COUNT):
        rounds = plain[turn * ROUNDS_PER_TURN_COUNT : (turn + 1) * ROUNDS_PER_TURN_COUNT]
        for before, after in pairwise(rounds):
            assert after.startswith(before.rstrip(b"]}")[: -len(b'"}')])
