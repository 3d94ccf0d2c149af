"""The ChatGPT Codex backend, asked over HTTP.

Owns:  one round over this wire. The event feed and the answer are read as the Responses API's are.
Rule 1: the login is the authorization's matter: it brings the bearer token and the account header.
"""

from typing import Any, Final

from holon.adapters.providers.endpoint import Authorization, Endpoint
from holon.adapters.providers.http_exchange import HttpCall, HttpExchange
from holon.adapters.providers.openai_codex.lower import lower
from holon.adapters.providers.openai_codex.replay import OutputReplay
from holon.adapters.providers.openai_responses.items import items_of
from holon.adapters.providers.openai_responses.lift import lift
from holon.adapters.providers.openai_responses.lower import LoweredRequest, RequestMemo
from holon.adapters.providers.openai_responses.reading import lift_style, response_in
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.reply_reading import blaming, completed
from holon.model.answer import ModelAnswer
from holon.model.conversation import AssistantMessage
from holon.model.prompt_frame import ProviderRequest
from holon.ports.clock import Clock
from holon.ports.provider import Hear

_HEADERS: Final = {
    "accept": "text/event-stream",
    "openai-beta": "responses=experimental",
    "originator": "holon",
}


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
        self._clock = clock  # for reset times that are told as a moment
        self._memo = RequestMemo()
        self._replay = OutputReplay()
        self._refused = refused or RefusedParameters()

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return the next round, without what the backend turns out not to take."""
        return await self._refused.answer(
            self._endpoint.provider,
            lambda without: lower(
                self._endpoint, request, self._memo, self._replay, without=without
            ),
            lambda lowered: self._send(lowered, hear),
        )

    async def _send(self, lowered: LoweredRequest, hear: Hear) -> ModelAnswer:
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
            with blaming(reply):
                response = await response_in(reply, hear)
                answer = completed(lift(response, lift_style(lowered, self._clock)), reply)
        self._remember(answer, response, lowered)
        return answer

    def _remember(
        self, answer: ModelAnswer, response: dict[str, Any], lowered: LoweredRequest
    ) -> None:
        rebuilt = items_of(AssistantMessage(blocks=answer.blocks), lowered.style)
        self._replay.keep(rebuilt, response["output"])
