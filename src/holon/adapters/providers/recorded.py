"""Record model exchanges to files, and replay them.

Owns:  the record of an exchange, its redacted form and its files; the recording provider; the
       replaying provider, its comparison of requests, and the translation of ids between two runs.
Rule 1: a request is recorded as the runtime meant it, before any transport. Fields that differ
        between runs and are not shown to the model (agent, cache keys) are left out.
Rule 2: files are numbered in the order in which exchanges ended. A file appears whole or not at all
        and is never overwritten.
Rule 3: each text is redacted separately, so that hiding a secret cannot break the JSON around it.
        The answer passes through unchanged; only the file is redacted.
Rule 4: failures are recorded like answers. A cancelled exchange has not ended and leaves no file.
Rule 5: an exchange that cannot be written is a failure: a recording with gaps would replay wrong.
Rule 6: exchanges of a model are replayed in the recorded order, each once.
Rule 7: ids and moments are fresh in every run. They are compared by position: the first id of a
        kind in one run stands for the first in the other. Everything else must be equal. A replayed
        answer carries the ids of this run.
Rule 8: a request that differs from the record is refused with the difference; nothing is guessed,
        and the exchange stays next in line.
Rule 9: a replayed failure has the recorded class, so that it is handled alike.
"""

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread
import msgspec

from holon.adapters.system.private_file import (
    FileUnusableError,
    make_home,
    read_bounded,
    replace_file,
)
from holon.model.errors import DecodeError
from holon.model.limits import RECORDED_DIFFERENCE_LINES_COUNT_MAX, RECORDED_EXCHANGE_BYTES_MAX
from holon.model.providers.attempts import (
    ModelUnavailableError,
    ProviderError,
    RequestRejectedError,
    TokenUsage,
    TransportDiagnostics,
)
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ConversationPosition, PromptBlock, ProviderRequest
from holon.model.record import Record
from holon.model.text_size import cut
from holon.model.turns.conversation import (
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from holon.model.turns.turn import AnswerProgress, CallGrew, ModelAnswer, TextGrew, ThinkingGrew
from holon.model.values import IdPrefix, JsonValue
from holon.ports.journal import Redactor
from holon.ports.providers import OnProgress, Provider
from holon.wire import codec

_NUMBERED: Final = re.compile(r"\d{6}\.json")
_KINDS: Final = "|".join(IdPrefix)
_ID: Final = re.compile(rf"\b(?P<kind>{_KINDS})_[0-9a-z]{{26}}(?![0-9a-z])")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_LINE_CHARS_MAX: Final = 160


class RecordedTool(Record, frozen=True, kw_only=True):
    """A tool that was offered."""

    name: str
    input_schema: JsonValue


class RecordedRequest(Record, frozen=True, kw_only=True):
    """What the model was shown."""

    system_prompt: str
    system_blocks: tuple[PromptBlock, ...] = ()
    context_blocks: tuple[PromptBlock, ...] = ()
    conversation: tuple[ConversationMessage, ...]
    tools: tuple[RecordedTool, ...] = ()
    turn_start: ConversationPosition | None = None


class RecordedFailure(Record, frozen=True, kw_only=True):
    """The error an exchange ended in."""

    code: str
    message: str
    hint: str | None = None
    retry_after_ms: int | None = None
    usage: TokenUsage | None = None
    diagnostics: TransportDiagnostics | None = None


class RecordedExchange(Record, frozen=True, kw_only=True):
    """A request and how it ended: in an answer or in a failure."""

    format: Literal["holon-exchange-1"]
    model_ref: str
    request: RecordedRequest
    answer: ModelAnswer | None = None
    failure: RecordedFailure | None = None

    def __post_init__(self) -> None:
        if (self.answer is None) is (self.failure is None):
            raise ValueError("an exchange ends in an answer or in a failure, and not in both")


def request_of(request: ProviderRequest) -> RecordedRequest:
    """Return the part of a request that is the same whenever the same thing is asked."""
    frame = request.frame
    return RecordedRequest(
        system_prompt=frame.system_prompt,
        system_blocks=frame.system_blocks,
        context_blocks=frame.context_blocks,
        conversation=request.conversation,
        tools=tuple(
            RecordedTool(name=tool.name, input_schema=tool.input_schema) for tool in request.tools
        ),
        turn_start=request.turn_start,
    )


def failure_of(error: ProviderError) -> RecordedFailure:
    """Return a provider's error as it is written down."""
    return RecordedFailure(
        code=error.code,
        message=str(error),
        hint=error.hint,
        retry_after_ms=error.retry_after_ms,
        usage=error.usage,
        diagnostics=error.diagnostics,
    )


def without_secrets(value: JsonValue, redactor: Redactor) -> JsonValue:
    """Return the same JSON with every text in it redacted."""
    match value:
        case str():
            return redactor.redact(value)
        case list() | tuple():
            return [without_secrets(each, redactor) for each in value]
        case dict():
            return {
                redactor.redact(key): without_secrets(each, redactor) for key, each in value.items()
            }
        case _:
            return value


def write_exchange(folder: Path, exchange: RecordedExchange, redactor: Redactor) -> Path:
    """Add an exchange to a recording, or raise FileUnusableError."""
    plain = without_secrets(codec.json_of(exchange), redactor)
    content = msgspec.json.format(msgspec.json.encode(plain, order="sorted"), indent=2)
    make_home(folder)
    draft = folder / f".exchange-{os.getpid()}-{id(exchange):x}"
    replace_file(draft, content + b"\n")
    try:
        return _named(draft, folder)
    except OSError as error:
        raise FileUnusableError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def read_exchanges(folder: Path) -> Iterator[tuple[Path, RecordedExchange]]:
    """Yield a recording's exchanges in order, or raise ModelUnavailableError."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise ModelUnavailableError(
            f"there is no recording to replay: {folder}: {error.strerror}",
            hint="set HOLON_PROVIDER_REPLAY to a folder made by HOLON_PROVIDER_RECORD",
        ) from error
    for path in paths:
        yield path, _read(path)


def _read(path: Path) -> RecordedExchange:
    if _NUMBERED.fullmatch(path.name) is None:
        raise _foreign(path, "its name is not six digits and .json")
    try:
        file = read_bounded(path, bytes_max=RECORDED_EXCHANGE_BYTES_MAX)
        if file is None:
            raise _foreign(path, "it has gone")
        return codec.decode(file.content, RecordedExchange)
    except (DecodeError, FileUnusableError) as error:
        raise _foreign(path, str(error)) from error


def _foreign(path: Path, why: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"{path} is not a recorded exchange: {why}",
        hint="record again into an empty folder, or move the file away",
    )


def _named(draft: Path, folder: Path) -> Path:
    """Give a draft the next free number; another process may take one at the same time."""
    number = max((int(p.stem) for p in folder.iterdir() if _NUMBERED.fullmatch(p.name)), default=0)
    while True:
        number += 1
        target = folder / f"{number:06}.json"
        try:
            target.hardlink_to(draft)
        except FileExistsError:
            continue
        return target


def difference_between(recorded: RecordedRequest, request: RecordedRequest) -> str | None:
    """Return the difference between a request and the recorded one, or None."""
    ours, theirs = _normalized_lines(recorded), _normalized_lines(request)
    if ours == theirs:
        return None
    lines = difflib.unified_diff(ours, theirs, "recorded", "asked", n=1, lineterm="")
    shown = [_bounded(line) for line in lines]
    left_out = len(shown) - RECORDED_DIFFERENCE_LINES_COUNT_MAX
    if left_out > 0:
        shown[RECORDED_DIFFERENCE_LINES_COUNT_MAX:] = [f"… and {left_out} more lines"]
    return "\n".join(shown)


def _bounded(line: str) -> str:
    return cut(line, chars_max=_LINE_CHARS_MAX)


def id_mapping(recorded: RecordedRequest, request: RecordedRequest) -> dict[str, str]:
    """Map ids of the record to ids of this run, for two requests that match."""
    return dict(zip(_ids_in(recorded), _ids_in(request), strict=True))


def translated(value: JsonValue, mapping: dict[str, str]) -> JsonValue:
    """Return the same JSON with ids of the recorded run replaced by those of this run."""
    match value:
        case str():
            return _ID.sub(lambda match: mapping.get(match.group(), match.group()), value)
        case list():
            return [translated(each, mapping) for each in value]
        case dict():
            return {key: translated(each, mapping) for key, each in value.items()}
        case _:
            return value


def _ids_in(request: RecordedRequest) -> list[str]:
    text = "\n".join(_lines_of("", codec.json_of(request)))
    return list(dict.fromkeys(match.group() for match in _ID.finditer(text)))


def _normalized_lines(request: RecordedRequest) -> list[str]:
    """Return the request as lines, with ids and moments replaced by their position."""
    places: dict[str, int] = {}

    def placed(match: re.Match[str]) -> str:
        return f"<{match['kind']} {places.setdefault(match.group(), len(places) + 1)}>"

    lines = _lines_of("", codec.json_of(request))
    return [_MOMENT.sub("<moment>", _ID.sub(placed, line)) for line in lines]


def _lines_of(path: str, value: JsonValue) -> Iterator[str]:
    """Every leaf with the path to it; a text line by line, so that a difference is easy to see."""
    match value:
        case dict() if value:
            for key in sorted(value):
                yield from _lines_of(f"{path}.{key}" if path else key, value[key])
        case list() if value:
            for at, each in enumerate(value):
                yield from _lines_of(f"{path}[{at}]", each)
        case str():
            for line in value.split("\n"):
                yield f"{path}: {line}"
        case _:
            yield f"{path} = {codec.encode(value).decode()}"


class ReplayingProvider:
    """Answers as one model did. Keep one for each model: it knows how far the record is played."""

    def __init__(self, model_ref: ModelRef, *, directory: Path, redactor: Redactor) -> None:
        self._model_ref = str(model_ref)
        self._directory = directory
        self._redactor = redactor
        self._exchanges: list[tuple[Path, RecordedExchange]] | None = None
        self._played_count = 0

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the answer on record, or raise the failure on record."""
        if self._exchanges is None:
            self._exchanges = await anyio.to_thread.run_sync(self._load)
        current = self._as_recorded(request)
        exchange = self._next(self._exchanges, current)
        self._played_count += 1
        if exchange.answer is None:
            assert exchange.failure is not None  # one of the two, as the record itself requires
            raise error_of(exchange.failure)
        answer = self._in_this_run(exchange.answer, exchange.request, current)
        for progress in _growth_of(answer):
            on_progress(progress)
        return answer

    def _load(self) -> list[tuple[Path, RecordedExchange]]:
        every = read_exchanges(self._directory)
        return [(path, each) for path, each in every if each.model_ref == self._model_ref]

    def _as_recorded(self, request: ProviderRequest) -> RecordedRequest:
        plain = without_secrets(codec.json_of(request_of(request)), self._redactor)
        return codec.decode(codec.encode(plain), RecordedRequest)

    def _next(
        self, exchanges: list[tuple[Path, RecordedExchange]], request: RecordedRequest
    ) -> RecordedExchange:
        if self._played_count >= len(exchanges):
            raise RequestRejectedError(
                f"the recording in {self._directory} holds {len(exchanges)} exchanges with "
                f"{self._model_ref}, and all of them have been played",
                hint="record again: this run asks the model more often",
            )
        path, exchange = exchanges[self._played_count]
        if (difference := difference_between(exchange.request, request)) is not None:
            raise RequestRejectedError(
                f"the request differs from the one in {path.name}:\n{difference}",
                hint="record again, or undo what changed the request",
            )
        return exchange

    def _in_this_run(
        self, answer: ModelAnswer, recorded: RecordedRequest, request: RecordedRequest
    ) -> ModelAnswer:
        plain = translated(codec.json_of(answer), id_mapping(recorded, request))
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


class RecordingProvider:
    """Asks another provider, and keeps a record."""

    def __init__(
        self, provider: Provider, model_ref: ModelRef, *, directory: Path, redactor: Redactor
    ) -> None:
        self._provider = provider
        self._model_ref = model_ref
        self._directory = directory
        self._redactor = redactor

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return what the other provider says, once it is on record."""
        try:
            answer = await self._provider.answer(request, on_progress)
        except ProviderError as error:
            await self._record(request, error)
            raise
        await self._record(request, answer)
        return answer

    async def _record(self, request: ProviderRequest, end: ModelAnswer | ProviderError) -> None:
        exchange = RecordedExchange(
            format="holon-exchange-1",
            model_ref=str(self._model_ref),
            request=request_of(request),
            answer=end if isinstance(end, ModelAnswer) else None,
            failure=failure_of(end) if isinstance(end, ProviderError) else None,
        )
        try:
            await anyio.to_thread.run_sync(
                write_exchange, self._directory, exchange, self._redactor
            )
        except FileUnusableError as error:
            raise ModelUnavailableError(
                f"the exchange could not be recorded: {error}",
                hint="check the folder named by HOLON_PROVIDER_RECORD",
            ) from error
