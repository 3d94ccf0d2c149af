"""The Anthropic Messages provider: one attempt at one model.

Owns:  connecting the request, the HTTP exchange and the answer.
Rule 1: the response decides how it is read: an event stream as a stream and JSON as JSON, whichever
        was requested.
Rule 2: only encoded conversation text is kept between attempts, so a lost attempt leaves no state.
"""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager

import msgspec

from holon.adapters.providers.anthropic_messages.answer import MessageAssembler, lift
from holon.adapters.providers.anthropic_messages.request import RequestMemo, lower
from holon.adapters.providers.http.exchange import HttpCall, HttpExchange, HttpReply
from holon.adapters.providers.http.reply import completed, events_of, json_of, with_diagnostics
from holon.adapters.providers.wire_answer import may_be_empty
from holon.adapters.providers.wire_request import Authorization, Endpoint
from holon.model.providers.attempts import ProviderError, TransportDiagnostics
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import ModelAnswer
from holon.model.values import JsonValue
from holon.ports.providers import OnProgress


class AnthropicMessages:
    """A model behind the Anthropic Messages wire."""

    def __init__(
        self, endpoint: Endpoint, exchange: HttpExchange, authorization: Authorization
    ) -> None:
        self._endpoint = endpoint
        self._exchange = exchange
        self._authorization = authorization
        self._memo = RequestMemo(endpoint)

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next round."""
        lowered = lower(self._endpoint, request, self._memo)
        call = HttpCall(
            provider=self._endpoint.provider,
            model_ref=self._endpoint.model_ref,
            url=lowered.url,
            headers={**lowered.headers, **await self._authorization.headers()},
            body=lowered.body,
        )
        with _noting(lowered.notes):
            async with self._exchange.open(call) as reply:
                with with_diagnostics(reply):
                    message = await _message(reply, on_progress)
                    answer = lift(
                        message,
                        origin=self._endpoint.thinking_origin,
                        allow_empty=may_be_empty(request.conversation),
                    )
                answer_with_facts = completed(answer, reply)
        return msgspec.structs.replace(
            answer_with_facts, diagnostics=_noted(answer_with_facts.diagnostics, lowered.notes)
        )


async def _message(reply: HttpReply, on_progress: OnProgress) -> JsonValue:
    if not reply.is_event_stream:
        return await json_of(reply)
    assembler = MessageAssembler()
    async with aclosing(events_of(reply)) as events:
        async for event in events:
            progress = assembler.feed(event)
            if progress is not None:
                on_progress(progress)
            if assembler.is_complete:
                break
    return assembler.message()


@contextmanager
def _noting(notes: tuple[str, ...]) -> Iterator[None]:
    """Put the remarks of the request on an error: a failure may be what they explain."""
    try:
        yield
    except ProviderError as error:
        error.diagnostics = _noted(error.diagnostics, notes)
        raise


def _noted(
    diagnostics: TransportDiagnostics | None, notes: tuple[str, ...]
) -> TransportDiagnostics | None:
    if diagnostics is None or not notes:
        return diagnostics
    return msgspec.structs.replace(diagnostics, notes=(*diagnostics.notes, *notes))
