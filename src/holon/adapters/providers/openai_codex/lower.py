"""A request as the ChatGPT Codex backend takes it.

Owns:  what this backend's body has that the Responses API's has not, and the other way round.
Rule 1: `reasoning` and `include` are always there, null and empty where there is nothing to say;
        `max_output_tokens` and `previous_response_id` never are: the backend refuses them.
Rule 2: every request is whole, streamed and unstored; `input` comes last (see openai_responses).
"""

from typing import Any

from holon.adapters.providers.endpoint import Endpoint
from holon.adapters.providers.openai_codex.replay import OutputReplay
from holon.adapters.providers.openai_responses.items import ItemStyle, wire_key
from holon.adapters.providers.openai_responses.lower import (
    ENCRYPTED_REASONING,
    LoweredRequest,
    RequestMemo,
    freeform_of,
    instructions_of,
)
from holon.decide.prompt_layout import layout_of
from holon.model.prompt_frame import ProviderRequest


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
