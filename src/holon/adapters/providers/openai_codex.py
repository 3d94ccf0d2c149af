"""The provider for the Codex backend: Responses API with original output items replayed.

Owns:  how this backend's body differs from that of the Responses API; the cache of original output
       items that are sent back in place of rebuilt ones; one round. Event stream and answer are
       read by openai_responses.
Rule 1: the backend stores nothing for us, so every request is whole, streamed and unstored; `input`
        comes last (see openai_responses).
Rule 2: originals replace only exactly the answer they came with: they are found by the items that
        would be sent without them.
Rule 3: an original loses the fields (`id`, `status`) that refer to stored items; reasoning stays
        encrypted.
Rule 4: a call in a form other than the one we rebuild (plain text where a function was offered, or
        the reverse) is rebuilt, because its result is encoded to match that form.
Rule 5: replay improves fidelity and caching only: after a restart rebuilt items serve.
Rule 6: `reasoning` and `include` are always present, null or empty where unused;
        `max_output_tokens` and `previous_response_id` are never sent: the backend refuses them.
Rule 7: the authorization adds the bearer token and the account header.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holon.adapters.providers.http.exchange import HttpCall, HttpExchange
from holon.adapters.providers.http.reply import completed, with_diagnostics
from holon.adapters.providers.openai_responses.answer import lift, lift_style, response_in
from holon.adapters.providers.openai_responses.request import (
    ENCRYPTED_REASONING,
    Item,
    ItemStyle,
    LoweredRequest,
    RequestMemo,
    freeform_of,
    hosted_item,
    instructions_of,
    is_hosted,
    is_sealed,
    items_of,
    type_first,
    wire_key,
)
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.wire_request import Authorization, Endpoint, plain_name
from holon.decide.providers.prompt_layout import layout_of
from holon.model.limits import MIB
from holon.model.lru import Lru
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import AssistantMessage
from holon.model.turns.turn import ModelAnswer
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress

_ANSWERS_COUNT_MAX: Final = 4_096
_BYTES_MAX: Final = 64 * MIB
_KEPT_KINDS: Final = frozenset({"message", "function_call", "custom_tool_call"})
_STORED_NAMES: Final = frozenset({"id", "status"})
_HEADERS: Final = {
    "accept": "text/event-stream",
    "openai-beta": "responses=experimental",
    "originator": "holon",
}


class OutputReplay:
    """Originals of the answers of one endpoint, bounded; the longest unused goes first."""

    def __init__(
        self, *, answers_max: int = _ANSWERS_COUNT_MAX, bytes_max: int = _BYTES_MAX
    ) -> None:
        self._originals: Lru[bytes, bytes] = Lru(answers_max, size_max=bytes_max)

    def keep(self, rebuilt: Sequence[Item], output: Sequence[dict[str, Any]]) -> None:
        """Remember the output an answer came as, by the items it would be rebuilt to."""
        sendable = originals_of(output)
        if _calls_in(sendable) != _calls_in(rebuilt):
            return
        originals = msgspec.json.encode(sendable)
        self._originals.put(_key_of(rebuilt), originals, len(originals))

    def in_place_of(self, rebuilt: Sequence[Item]) -> Sequence[Item]:
        """Return the originals where they are known, else the rebuilt items themselves."""
        if not self._originals or not rebuilt:
            return rebuilt
        originals = self._originals.get(_key_of(rebuilt))
        if originals is None:
            return rebuilt
        return msgspec.json.decode(originals, type=list[dict[str, Any]])


def originals_of(output: Sequence[dict[str, Any]]) -> list[Item]:
    """Return the items of an output as they can be sent back."""
    sendable = (_original(item) for item in output)
    return [item for item in sendable if item is not None]


def _original(item: dict[str, Any]) -> Item | None:
    if is_sealed(item):
        return type_first(item)
    if is_hosted(item):
        return hosted_item(item, keeps_id=False)
    is_replayable = item.get("type") in _KEPT_KINDS and bool(item.get("content", True))
    if not is_replayable:
        return None
    replayed = {key: value for key, value in type_first(item).items() if key not in _STORED_NAMES}
    for key, normalize in (("call_id", wire_key), ("name", plain_name)):
        if isinstance(replayed.get(key), str):
            replayed[key] = normalize(replayed[key])
    return replayed


def _calls_in(items: Sequence[Item]) -> list[tuple[Any, Any]]:
    return [(item["type"], item["call_id"]) for item in items if "call_id" in item]


def _key_of(items: Sequence[Item]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(items)).digest()


def lower(
    endpoint: Endpoint,
    request: ProviderRequest,
    memo: RequestMemo,
    replay: OutputReplay,
    *,
    without: frozenset[str] = frozenset(),
) -> LoweredRequest:
    """Return the full request for an endpoint."""
    layout = layout_of(request)
    effort = endpoint.reasoning_effort
    shape: dict[str, Any] = {
        "model": endpoint.model,
        "instructions": instructions_of(layout),
        "tools": memo.catalog(endpoint, request.tools),
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": None if effort is None else {"effort": effort},
        "store": False,
        "stream": True,
        "include": [] if effort is None else [ENCRYPTED_REASONING],
    }
    if request.frame.cache is not None:
        shape["prompt_cache_key"] = wire_key(request.frame.cache.prompt_cache_key)
    shape = {name: value for name, value in shape.items() if name not in without}
    style = ItemStyle(
        thinking_origin=endpoint.thinking_origin,
        freeform=freeform_of(endpoint, request.tools),
        assistant_parts=True,
        keeps_ids=False,
    )
    return memo.with_input(shape, request, layout, style, replay=replay.in_place_of)


class OpenAiCodexTransport:
    """One model behind `POST {base_url}/responses` of the Codex backend."""

    def __init__(
        self,
        endpoint: Endpoint,
        exchange: HttpExchange,
        authorization: Authorization,
        *,
        clock: Clock | None = None,
        refused: RefusedParameters | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._exchange = exchange
        self._authorization = authorization
        self._clock = clock  # for reset times given as a moment
        self._memo = RequestMemo()
        self._replay = OutputReplay()
        self._refused = refused or RefusedParameters()

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next round, without what the backend turns out not to take."""
        return await self._refused.answer(
            self._endpoint.provider,
            lambda without: lower(
                self._endpoint, request, self._memo, self._replay, without=without
            ),
            lambda lowered: self._send(lowered, on_progress),
        )

    async def _send(self, lowered: LoweredRequest, on_progress: OnProgress) -> ModelAnswer:
        call = HttpCall(
            provider=self._endpoint.provider,
            model_ref=self._endpoint.model_ref,
            url=f"{self._endpoint.base_url}/responses",
            headers={
                **_HEADERS,
                **await self._authorization.headers(),
            },
            body=lowered.body,
        )
        async with self._exchange.open(call) as reply:
            with with_diagnostics(reply):
                response = await response_in(reply, on_progress)
                answer = completed(lift(response, lift_style(lowered, self._clock)), reply)
        self._remember(answer, response, lowered)
        return answer

    def _remember(
        self, answer: ModelAnswer, response: dict[str, Any], lowered: LoweredRequest
    ) -> None:
        rebuilt = items_of(AssistantMessage(blocks=answer.blocks), lowered.style)
        self._replay.keep(rebuilt, response["output"])
