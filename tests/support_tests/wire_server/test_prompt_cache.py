"""The server counts what a provider could read from its cache, and says so in usage."""

from typing import Any

import pytest

from holon.model.providers.models import TransportKind
from tests.support.wire_server.faults import FINE
from tests.support.wire_server.server import open_wire_server
from tests.support_tests.wire_server.bodies import CHAT, MESSAGES, RESPONSES, plain_client, post
from tests.support_tests.wire_server.clients import HELLO

LONG = "a long story " * 400
MARK: Any = {"cache_control": {"type": "ephemeral"}}


def text(words: str, *, marked: bool = False) -> dict[str, Any]:
    """A text block of the Messages wire."""
    return {"type": "text", "text": words, **(MARK if marked else {})}


def cached(kind: TransportKind, usage: dict[str, Any]) -> tuple[int, int]:
    """All input tokens and the cached ones, as the wire reports them."""
    if kind is RESPONSES:
        return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.requirement("provider-scripted:cache-reads-are-counted")
@pytest.mark.parametrize("kind", [RESPONSES, CHAT])
async def test_a_shared_prefix_of_the_same_key_is_read_from_cache(kind: TransportKind) -> None:
    name = "input" if kind is RESPONSES else "messages"
    first: Any = [{"role": "user", "content": LONG}]
    second = [*first, {"role": "assistant", "content": "I see."}, {"role": "user", "content": "?"}]
    async with open_wire_server(HELLO) as server, plain_client() as client:

        async def ask(messages: Any, key: str) -> tuple[int, int]:
            changes = {name: messages, "prompt_cache_key": key}
            reply = await post(client, server, kind, **changes)
            return cached(kind, reply.json()["usage"])

        cold, cold_read = await ask(first, "a")
        warm, warm_read = await ask(second, "a")
        _, other_read = await ask(second, "b")
        changed = [{"role": "user", "content": f"! {LONG}"}]
        _, changed_read = await ask(changed, "a")
    assert cold_read == 0
    assert warm > cold
    assert warm_read >= cold - 1
    assert other_read == 0
    assert changed_read < cold // 10
    assert 0 < server.cached_share < 1


@pytest.mark.requirement("provider-scripted:cache-reads-are-counted")
async def test_only_marked_prefixes_are_cached_on_the_messages_wire() -> None:
    async with open_wire_server(HELLO, otherwise=FINE) as server, plain_client() as client:

        async def ask(*words: str, mark: bool = True) -> dict[str, Any]:
            blocks = [text(word) for word in words]
            blocks[-1] = text(words[-1], marked=mark)
            messages = [{"role": "user", "content": blocks}]
            reply = await post(client, server, MESSAGES, messages=messages)
            usage: dict[str, Any] = reply.json()["usage"]
            return usage

        unmarked = await ask(LONG, mark=False)
        first = await ask(LONG)
        second = await ask(LONG, "and then")
        twentieth = await ask(LONG, *(f"{n}" for n in range(19)))
        too_far = await ask(LONG, *(f"{n} else" for n in range(25)))
    assert (unmarked["cache_read_input_tokens"], unmarked["cache_creation_input_tokens"]) == (0, 0)
    assert first["cache_read_input_tokens"] == 0
    assert first["cache_creation_input_tokens"] > 1_000
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert 0 < second["cache_creation_input_tokens"] < 20
    assert twentieth["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert too_far["cache_read_input_tokens"] == 0
