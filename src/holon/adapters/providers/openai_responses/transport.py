"""The Responses API, asked over HTTP.

Owns:  one round over this wire: lower, send, read, lift, and the continuation windows.
Rule 1: whatever a window saves, the answer is the one the whole request would have had: a provider
        that refuses to continue is sent the whole request at once, in the same attempt.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holon.adapters.providers.endpoint import Authorization, Endpoint
from holon.adapters.providers.http_exchange import HttpCall, HttpExchange
from holon.adapters.providers.openai_responses.continuation import (
    ContinuationNote,
    ContinuationWindows,
    OnlyNewItems,
    Window,
    plan_request,
    scope_of,
)
from holon.adapters.providers.openai_responses.conversation_memo import Progress
from holon.adapters.providers.openai_responses.items import items_of
from holon.adapters.providers.openai_responses.lift import lift
from holon.adapters.providers.openai_responses.lower import (
    LoweredRequest,
    RequestMemo,
    continued_body,
    lower,
)
from holon.adapters.providers.openai_responses.reading import lift_style, response_in
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.reply_reading import blaming, completed
from holon.model.answer import ModelAnswer
from holon.model.conversation import AssistantMessage
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_errors import ContextTooLongError, ProviderError, RequestRejectedError
from holon.model.record import Record
from holon.model.turn import StopReason
from holon.ports.clock import Clock
from holon.ports.provider import Hear

_ACCEPT: Final[Mapping[bool, str]] = {True: "text/event-stream", False: "application/json"}


class _Exchanged(Record, frozen=True, kw_only=True):
    """A complete answer, and the name the provider knows it by."""

    answer: ModelAnswer
    response_id: str | None


class OpenAiResponsesTransport:
    """One model behind `POST {base_url}/responses`."""

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
        self._windows = ContinuationWindows()
        self._refused = refused or RefusedParameters()

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return the next round, without what the provider turns out not to take."""
        return await self._refused.answer(
            self._endpoint.provider,
            lambda without: lower(self._endpoint, request, self._memo, without=without),
            lambda lowered: self._asked(request, lowered, hear),
        )

    async def _asked(
        self, request: ProviderRequest, lowered: LoweredRequest, hear: Hear
    ) -> ModelAnswer:
        if not self._endpoint.incremental:
            return (await self._send(lowered.body, lowered, hear, note=None)).answer
        return await self._continued(request, lowered, hear)

    async def _continued(
        self, request: ProviderRequest, lowered: LoweredRequest, hear: Hear
    ) -> ModelAnswer:
        scope = scope_of(request.frame)
        plan = plan_request(
            scope=scope,
            window=self._windows.take(scope),
            shape=lowered.shape,
            messages=lowered.messages,
        )
        if isinstance(plan, OnlyNewItems):
            exchanged = await self._shortened(plan, lowered, hear)
        else:
            exchanged = await self._send(lowered.body, lowered, hear, note=plan.why)
        if exchanged.answer.stop_reason is not StopReason.MAX_TOKENS:
            self._windows.keep(scope, _window_after(lowered, exchanged))
        return exchanged.answer

    async def _shortened(
        self, plan: OnlyNewItems, lowered: LoweredRequest, hear: Hear
    ) -> _Exchanged:
        body = continued_body(
            lowered.shape, plan.items, previous_response_id=plan.previous_response_id
        )
        try:
            return await self._send(body, lowered, hear, note=ContinuationNote.HIT)
        except RequestRejectedError as error:
            if not _is_about_the_request(error):
                raise
            # Most likely the stored response is gone. The whole request needs nothing stored.
            return await self._send(lowered.body, lowered, hear, note=ContinuationNote.REFUSED)

    async def _send(
        self, body: bytes, lowered: LoweredRequest, hear: Hear, *, note: ContinuationNote | None
    ) -> _Exchanged:
        call = HttpCall(
            provider=self._endpoint.provider,
            model_ref=self._endpoint.model_ref,
            url=f"{self._endpoint.base_url}/responses",
            headers={
                "accept": _ACCEPT[self._endpoint.stream],
                **await self._authorization.headers(),
            },
            body=body,
        )
        style = lift_style(lowered, self._clock)
        try:
            async with self._exchange.open(call) as reply:
                with blaming(reply):
                    response = await response_in(reply, hear)
                    answer = completed(lift(response, style), reply)
        except ProviderError as error:
            _note_on_error(error, note)
            raise
        return _Exchanged(answer=_noted(answer, note), response_id=_id_in(response))


def _window_after(lowered: LoweredRequest, exchanged: _Exchanged) -> Window:
    said = items_of(AssistantMessage(blocks=exchanged.answer.blocks), lowered.style)
    encoded = (msgspec.Raw(msgspec.json.encode(item)) for item in said)
    progress = lowered.messages[-1].progress if lowered.messages else Progress()
    return Window(
        shape=lowered.shape,
        progress=progress.behind(encoded),
        response_id=exchanged.response_id,
    )


def _is_about_the_request(error: RequestRejectedError) -> bool:
    """Whether the request was turned away at the door for what it asks, not for its length."""
    status = None if error.diagnostics is None else error.diagnostics.status
    is_client_error = status is not None and 400 <= status < 500
    return is_client_error and not isinstance(error, ContextTooLongError)


def _id_in(response: dict[str, Any]) -> str | None:
    response_id = response.get("id")
    return response_id if isinstance(response_id, str) and response_id else None


def _noted(answer: ModelAnswer, note: ContinuationNote | None) -> ModelAnswer:
    if note is None or answer.diagnostics is None:
        return answer
    told = msgspec.structs.replace(answer.diagnostics, continuation=note.value)
    return msgspec.structs.replace(answer, diagnostics=told)


def _note_on_error(error: ProviderError, note: ContinuationNote | None) -> None:
    if note is not None and error.diagnostics is not None:
        error.diagnostics = msgspec.structs.replace(error.diagnostics, continuation=note.value)
