"""Playing back what a model said.

Owns:  the provider that answers from a recording.
Rule 1: exchanges of a model are played in the order they were recorded, each once.
Rule 2: a request that differs from the one on record is refused with the difference; nothing is
        guessed, and the exchange stays next in line.
Rule 3: a played failure is the recorded one, of the same class, so that it is handled alike.
"""

from collections.abc import Iterator
from pathlib import Path

import anyio.to_thread

from holon.adapters.providers.recorded.comparison import (
    difference_between,
    partners_of,
    translated,
)
from holon.adapters.providers.recorded.exchange import (
    RecordedExchange,
    RecordedFailure,
    RecordedRequest,
    read_exchanges,
    request_of,
    without_secrets,
)
from holon.model.answer import AnswerProgress, CallGrew, ModelAnswer, TextGrew, ThinkingGrew
from holon.model.conversation import OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.model_ref import ModelRef
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_errors import ProviderError, RequestRejectedError
from holon.ports.provider import Hear
from holon.ports.redactor import Redactor
from holon.wire import codec


class ReplayingProvider:
    """Answers as one model did. Keep one for each model: it knows how far the record is played."""

    def __init__(self, model_ref: ModelRef, *, directory: Path, redactor: Redactor) -> None:
        self._model_ref = str(model_ref)
        self._directory = directory
        self._redactor = redactor
        self._exchanges: list[tuple[Path, RecordedExchange]] | None = None
        self._played_count = 0

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return the answer on record, or raise the failure on record."""
        if self._exchanges is None:
            self._exchanges = await anyio.to_thread.run_sync(self._load)
        asked = self._as_recorded(request)
        exchange = self._next(self._exchanges, asked)
        self._played_count += 1
        if exchange.answer is None:
            assert exchange.failure is not None  # one of the two, as the record itself requires
            raise error_of(exchange.failure)
        answer = self._in_this_run(exchange.answer, exchange.request, asked)
        for progress in _growth_of(answer):
            hear(progress)
        return answer

    def _load(self) -> list[tuple[Path, RecordedExchange]]:
        every = read_exchanges(self._directory)
        return [(path, each) for path, each in every if each.model_ref == self._model_ref]

    def _as_recorded(self, request: ProviderRequest) -> RecordedRequest:
        plain = without_secrets(codec.json_of(request_of(request)), self._redactor)
        return codec.decode(codec.encode(plain), RecordedRequest)

    def _next(
        self, exchanges: list[tuple[Path, RecordedExchange]], asked: RecordedRequest
    ) -> RecordedExchange:
        if self._played_count >= len(exchanges):
            raise RequestRejectedError(
                f"the recording in {self._directory} holds {len(exchanges)} exchanges with "
                f"{self._model_ref}, and all of them have been played",
                hint="record again: this run asks the model more often",
            )
        path, exchange = exchanges[self._played_count]
        if (difference := difference_between(exchange.request, asked)) is not None:
            raise RequestRejectedError(
                f"the request differs from the one in {path.name}:\n{difference}",
                hint="record again, or undo what changed the request",
            )
        return exchange

    def _in_this_run(
        self, answer: ModelAnswer, recorded: RecordedRequest, asked: RecordedRequest
    ) -> ModelAnswer:
        plain = translated(codec.json_of(answer), partners_of(recorded, asked))
        return codec.decode(codec.encode(plain), ModelAnswer)


def error_of(failure: RecordedFailure) -> ProviderError:
    """Return the error a recorded failure stands for."""
    kinds = {kind.code: kind for kind in _kinds_below(ProviderError)}
    return kinds.get(failure.code, ProviderError)(
        failure.message,
        hint=failure.hint,
        retry_after_ms=failure.retry_after_ms,
        usage=failure.usage,
        diagnostics=failure.diagnostics,
    )


def _kinds_below(kind: type[ProviderError]) -> Iterator[type[ProviderError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds_below(below)


def _growth_of(answer: ModelAnswer) -> Iterator[AnswerProgress]:
    for block in answer.blocks:
        match block:
            case TextBlock(text=text):
                yield TextGrew(text=text)
            case ThinkingBlock(text=text):
                yield ThinkingGrew(text=text)
            case OpaqueBlock():
                pass  # nothing a watcher could read
            case ToolUseBlock(call_id=call_id, name=name, input=arguments):
                fragment = codec.encode(arguments).decode()
                yield CallGrew(call_id=call_id, name=name, fragment=fragment)
