"""The Chat Completions provider over HTTP.

Owns:  connecting request, exchange and answer for one endpoint.
Rule 1: the response decides how it is read: an event stream as a stream, anything else as JSON.
"""

from contextlib import aclosing

from holon.adapters.providers.http.exchange import HttpCall, HttpExchange, HttpReply
from holon.adapters.providers.http.reply import completed, events_of, json_of, with_diagnostics
from holon.adapters.providers.openai_chat.answer import lift
from holon.adapters.providers.openai_chat.request import (
    CHAT_PATH,
    LoweredRequest,
    RequestMemo,
    lower,
)
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.wire_answer import may_be_empty
from holon.adapters.providers.wire_request import Authorization, Endpoint
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import ModelAnswer
from holon.model.values import JsonValue
from holon.ports.providers import OnProgress


class OpenAiChatTransport:
    """Asks one model behind one Chat Completions endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        exchange: HttpExchange,
        authorization: Authorization,
        *,
        refused: RefusedParameters | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._exchange = exchange
        self._authorization = authorization
        self._memo = RequestMemo()
        self._refused = refused or RefusedParameters()

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next round."""
        return await self._refused.answer(
            self._endpoint.provider,
            lambda without: lower(self._endpoint, request, self._memo, without=without),
            lambda lowered: self._send(request, lowered, on_progress),
        )

    async def _send(
        self, request: ProviderRequest, lowered: LoweredRequest, on_progress: OnProgress
    ) -> ModelAnswer:
        endpoint = self._endpoint
        call = HttpCall(
            provider=endpoint.provider,
            model_ref=endpoint.model_ref,
            url=endpoint.base_url + CHAT_PATH,
            headers=await self._authorization.headers(),
            body=lowered.body,
        )
        async with self._exchange.open(call) as reply:
            with with_diagnostics(reply):
                if reply.is_event_stream:
                    value = await _streamed(reply, on_progress)
                else:
                    value = await json_of(reply)
                answer = lift(
                    value,
                    thinking_origin=endpoint.thinking_origin,
                    allow_empty=may_be_empty(request.conversation),
                )
            return completed(answer, reply)


async def _streamed(reply: HttpReply, on_progress: OnProgress) -> JsonValue:
    from holon.adapters.providers.openai_chat.answer import ChatStream  # not every reply is one

    stream = ChatStream()
    async with aclosing(events_of(reply)) as events:
        async for event in events:
            for progress in stream.feed(event):
                on_progress(progress)
            if stream.is_done:
                break
    return stream.whole()
