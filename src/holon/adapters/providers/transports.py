"""From an endpoint to the wire that speaks to it.

Owns:  which class serves which transport, and what each of them is built from.
Rule 1: a wire is imported when a model needs it and not before: naming models costs nothing.
Rule 2: every transport has a row here; one without a wire does not type-check.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from holon.adapters.providers.endpoint import Authorization, Endpoint
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.model.provider_setting import TransportKind
from holon.ports.clock import Clock
from holon.ports.provider import Provider

if TYPE_CHECKING:
    from holon.adapters.providers.http_exchange import HttpExchange

SCRIPTS_FOLDER: Final = "scripts"


class TransportParts(msgspec.Struct, frozen=True, kw_only=True):
    """What wires share. `exchange` makes the HTTP client when the first wire asks for it."""

    exchange: "Callable[[], HttpExchange]"
    clock: Clock
    home: Path
    local_threads_count: int
    refused: RefusedParameters = msgspec.field(default_factory=RefusedParameters)


def provider_at(
    endpoint: Endpoint, authorization: Authorization, parts: TransportParts
) -> Provider:
    """Return the provider that serves an endpoint, or raise ModelUnavailableError."""
    match endpoint.transport:
        case TransportKind.OPENAI_RESPONSES:
            from holon.adapters.providers.openai_responses.transport import OpenAiResponsesTransport

            return OpenAiResponsesTransport(
                endpoint,
                parts.exchange(),
                authorization,
                clock=parts.clock,
                refused=parts.refused,
            )
        case TransportKind.OPENAI_CODEX_RESPONSES:
            from holon.adapters.providers.openai_codex.transport import OpenAiCodexTransport

            return OpenAiCodexTransport(
                endpoint,
                parts.exchange(),
                authorization,
                clock=parts.clock,
                refused=parts.refused,
            )
        case TransportKind.OPENAI_CHAT_COMPLETIONS:
            from holon.adapters.providers.openai_chat.transport import OpenAiChatTransport

            return OpenAiChatTransport(
                endpoint, parts.exchange(), authorization, refused=parts.refused
            )
        case TransportKind.ANTHROPIC_MESSAGES:
            from holon.adapters.providers.anthropic_messages.transport import AnthropicMessages

            return AnthropicMessages(endpoint, parts.exchange(), authorization)
        case TransportKind.SCRIPTED:
            from holon.adapters.providers.scripted.provider import ScriptedProvider
            from holon.adapters.providers.scripted.read_script import find_script

            script = find_script(endpoint.model, scripts_dir=parts.home / SCRIPTS_FOLDER)
            return ScriptedProvider(script, parts.clock)
        case TransportKind.LOCAL:
            from holon.adapters.providers.local.open_model import open_local_model

            return open_local_model(endpoint.model, threads=parts.local_threads_count)
        case _:
            assert_never(endpoint.transport)
