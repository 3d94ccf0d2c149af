"""The Responses API provider over HTTP, with continuation of stored responses.

Owns:  one round: encode, send, read; the continuation windows (what the provider already holds, by
       scope) and the decision to use one.
Rule 1: a window is used only when the request has the same shape and the provider's items are a
        strictly shorter prefix of ours. Anything else is sent whole, with the reason recorded.
Rule 2: a window is taken out before the request is sent and put back only by a complete answer, so
        an error, a cut-off answer or a cancelled request leaves none behind.
Rule 3: reasoning is not compared: the provider keeps its own, and our replay of it may differ.
Rule 4: a window never changes the answer: a provider that refuses to continue is sent the whole
        request at once, in the same attempt.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import dropwhile
from typing import Any, Final, TypeAlias

import msgspec

from holon.adapters.providers.http.exchange import HttpCall, HttpExchange
from holon.adapters.providers.http.reply import completed, with_diagnostics
from holon.adapters.providers.openai_responses.answer import lift, lift_style, response_in
from holon.adapters.providers.openai_responses.request import (
    EncodedMessage,
    LoweredRequest,
    Progress,
    RequestMemo,
    continued_body,
    is_reasoning,
    items_of,
    lower,
)
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.wire_request import Authorization, Endpoint
from holon.model.lru import Lru
from holon.model.providers.attempts import ContextTooLongError, ProviderError, RequestRejectedError
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.record import Record
from holon.model.turns.conversation import AssistantMessage
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress

_WINDOWS_COUNT_MAX: Final = 256

Scope: TypeAlias = tuple[str, str]
_ACCEPT: Final[Mapping[bool, str]] = {True: "text/event-stream", False: "application/json"}


class ContinuationNote(StrEnum):
    """How a request was shortened, or why it was not."""

    HIT = "hit"
    MISSING_SCOPE = "missing_continuation_scope"
    INITIAL_REQUEST = "not_applicable_initial_request"
    SHAPE_CHANGED = "request_shape_changed"
    NOT_APPEND_ONLY = "conversation_not_strict_append_only"
    MISSING_RESPONSE_ID = "missing_response_id"
    REFUSED = "previous_response_refused"  # a hit the provider refused; sent again, whole


class ContinuationWindow(Record, frozen=True, kw_only=True):
    """What the provider holds of one conversation after its last response."""

    shape: bytes
    progress: Progress
    response_id: str | None


class WholeRequest(Record, frozen=True, kw_only=True):
    """Send everything."""

    why: ContinuationNote


class OnlyNewItems(Record, frozen=True, kw_only=True):
    """Send what the provider does not have, and name what it does have."""

    previous_response_id: str
    items: Sequence[msgspec.Raw]


Plan: TypeAlias = WholeRequest | OnlyNewItems


def scope_of(frame: PromptFrame) -> Scope | None:
    """Return the scope a window is kept under: the cache identity, where the frame has one."""
    return None if frame.cache is None else (frame.cache.agent_id, frame.cache.prompt_cache_key)


def plan_request(
    *,
    scope: Scope | None,
    window: ContinuationWindow | None,
    shape: bytes,
    messages: Sequence[EncodedMessage],
) -> Plan:
    """Decide what to send. First matching rule wins; read top to bottom."""
    if scope is None:
        return WholeRequest(why=ContinuationNote.MISSING_SCOPE)
    if window is None:
        return WholeRequest(why=ContinuationNote.INITIAL_REQUEST)
    if window.response_id is None:
        return WholeRequest(why=ContinuationNote.MISSING_RESPONSE_ID)
    if window.shape != shape:
        return WholeRequest(why=ContinuationNote.SHAPE_CHANGED)
    items = _items_behind(window.progress, messages)
    if not items:
        return WholeRequest(why=ContinuationNote.NOT_APPEND_ONLY)
    return OnlyNewItems(previous_response_id=window.response_id, items=items)


def _items_behind(stored: Progress, messages: Sequence[EncodedMessage]) -> Sequence[msgspec.Raw]:
    """Return the items after a stored prefix; empty where ours do not begin with it."""
    first = len(messages)
    while first and _before(first, messages).count > stored.count:
        first -= 1
    progress = _before(first, messages)
    items = [item for message in messages[first:] for item in message.items]
    passed = 0
    while progress.count < stored.count and passed < len(items):
        progress = progress.behind((items[passed],))
        passed += 1
    if progress != stored:
        return ()
    # Reasoning before the first new item belongs to the stored prefix.
    return tuple(dropwhile(is_reasoning, items[passed:]))


def _before(index: int, messages: Sequence[EncodedMessage]) -> Progress:
    return messages[index - 1].progress if index else Progress()


class ContinuationWindows:
    """The windows of one endpoint, bounded; the longest unused goes first."""

    def __init__(self, *, windows_max: int = _WINDOWS_COUNT_MAX) -> None:
        self._windows: Lru[Scope, ContinuationWindow] = Lru(windows_max)

    def take(self, scope: Scope | None) -> ContinuationWindow | None:
        """Take the window of a scope out, if there is one."""
        return None if scope is None else self._windows.pop(scope)

    def keep(self, scope: Scope | None, window: ContinuationWindow) -> None:
        """Keep a window until the next request of its scope."""
        if scope is not None:
            self._windows.put(scope, window)


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
        self._clock = clock  # for reset times given as a moment
        self._memo = RequestMemo()
        self._windows = ContinuationWindows()
        self._refused = refused or RefusedParameters()

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next round, without what the provider turns out not to take."""
        return await self._refused.answer(
            self._endpoint.provider,
            lambda without: lower(self._endpoint, request, self._memo, without=without),
            lambda lowered: self._asked(request, lowered, on_progress),
        )

    async def _asked(
        self, request: ProviderRequest, lowered: LoweredRequest, on_progress: OnProgress
    ) -> ModelAnswer:
        if not self._endpoint.incremental:
            return (await self._send(lowered.body, lowered, on_progress, note=None)).answer
        return await self._continued(request, lowered, on_progress)

    async def _continued(
        self, request: ProviderRequest, lowered: LoweredRequest, on_progress: OnProgress
    ) -> ModelAnswer:
        scope = scope_of(request.frame)
        plan = plan_request(
            scope=scope,
            window=self._windows.take(scope),
            shape=lowered.shape,
            messages=lowered.messages,
        )
        if isinstance(plan, OnlyNewItems):
            exchanged = await self._shortened(plan, lowered, on_progress)
        else:
            exchanged = await self._send(lowered.body, lowered, on_progress, note=plan.why)
        if exchanged.answer.stop_reason is not StopReason.MAX_TOKENS:
            self._windows.keep(scope, _window_after(lowered, exchanged))
        return exchanged.answer

    async def _shortened(
        self, plan: OnlyNewItems, lowered: LoweredRequest, on_progress: OnProgress
    ) -> _Exchanged:
        body = continued_body(
            lowered.shape, plan.items, previous_response_id=plan.previous_response_id
        )
        try:
            return await self._send(body, lowered, on_progress, note=ContinuationNote.HIT)
        except RequestRejectedError as error:
            if not _is_about_the_request(error):
                raise
            # Most likely the stored response is gone. The whole request needs nothing stored.
            return await self._send(
                lowered.body, lowered, on_progress, note=ContinuationNote.REFUSED
            )

    async def _send(
        self,
        body: bytes,
        lowered: LoweredRequest,
        on_progress: OnProgress,
        *,
        note: ContinuationNote | None,
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
                with with_diagnostics(reply):
                    response = await response_in(reply, on_progress)
                    answer = completed(lift(response, style), reply)
        except ProviderError as error:
            _note_on_error(error, note)
            raise
        return _Exchanged(answer=_noted(answer, note), response_id=_id_in(response))


def _window_after(lowered: LoweredRequest, exchanged: _Exchanged) -> ContinuationWindow:
    items = items_of(AssistantMessage(blocks=exchanged.answer.blocks), lowered.style)
    encoded = (msgspec.Raw(msgspec.json.encode(item)) for item in items)
    progress = lowered.messages[-1].progress if lowered.messages else Progress()
    return ContinuationWindow(
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
    diagnostics = msgspec.structs.replace(answer.diagnostics, continuation=note.value)
    return msgspec.structs.replace(answer, diagnostics=diagnostics)


def _note_on_error(error: ProviderError, note: ContinuationNote | None) -> None:
    if note is not None and error.diagnostics is not None:
        error.diagnostics = msgspec.structs.replace(error.diagnostics, continuation=note.value)
