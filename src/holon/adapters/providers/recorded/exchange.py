"""One exchange with a model, as a file.

Owns:  the record of an exchange, its secret-free form, and the files of a recording.
Rule 1: a request is kept as the runtime meant it, before any wire. What differs from run to run
        without being said to the model (agent, cache keys) is left out.
Rule 2: files are numbered in the order exchanges ended. A file appears whole or not at all, and
        none is ever written over.
Rule 3: every text is redacted by itself, so that hiding a secret cannot break the JSON around it.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from holon.adapters.system.private_file import (
    FileUnusableError,
    make_home,
    read_bounded,
    replace_file,
)
from holon.model.answer import ModelAnswer
from holon.model.conversation import ConversationMessage
from holon.model.errors import DecodeError
from holon.model.json_value import JsonValue
from holon.model.limits import RECORDED_EXCHANGE_BYTES_MAX
from holon.model.prompt_frame import ConversationPlace, PromptBlock, ProviderRequest
from holon.model.provider_attempt import TokenUsage, TransportDiagnostics
from holon.model.provider_errors import ModelUnavailableError, ProviderError
from holon.model.record import Record
from holon.ports.redactor import Redactor
from holon.wire import codec

_NUMBERED: Final = re.compile(r"\d{6}\.json")


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
    turn_start: ConversationPlace | None = None


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
        found = read_bounded(path, bytes_max=RECORDED_EXCHANGE_BYTES_MAX)
        if found is None:
            raise _foreign(path, "it has gone")
        return codec.decode(found.content, RecordedExchange)
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
