"""Shared parts of reading a provider's answer: decoding, thinking tags, size limit, final checks.

Owns:  JSON decoding and the accessors every transport reads an answer with; separating `<think>`
       text from the answer, whole or streamed; the size limit of an assembled answer; the last
       check before the runtime gets the answer.
Rule 1: the size limit counts what an assembler keeps. Content that passes by (previews,
        repetitions, framing) is bounded by the HTTP client.
Rule 2: any defect becomes an UnreadableResponseError that names the place, never the content.
Rule 3: decoded values are exact JSON: no NaN, no lone surrogates, bounded nesting.
Rule 4: tool arguments that are not JSON stay text; the tool layer refuses that text.
Rule 5: thinking tags count only at the beginning of an answer, as in the servers' own parsers;
        later ones are ordinary text. Without a closing tag, all of it is thinking.
Rule 6: every character is examined a fixed number of times, however the stream is cut.
Rule 7: an answer contains text, thinking or a call. Only after the results of its calls may a model
        end its turn with an empty answer. Server-side tool items alone are an answer only when the
        response was cut short.
Rule 8: the calls of one answer have distinct ids, because results are matched by them.
Rule 9: a model that stopped for a tool names one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holon.model.errors import NotJsonError
from holon.model.limits import (
    PROVIDER_ANSWER_CHARS_MAX,
    PROVIDER_OPAQUE_CHARS_MAX,
    TOOL_ARGUMENTS_BYTES_MAX,
)
from holon.model.providers.attempts import TokenUsage, UnreadableResponseError
from holon.model.turns.conversation import (
    THINK_OPENING,
    AssistantBlock,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ToolResultBlock,
    tool_uses_of,
)
from holon.model.turns.turn import AnswerProgress, ModelAnswer, StopReason, TextGrew, ThinkingGrew
from holon.model.values import JsonValue, require_json

_COUNT_MAX: Final = 2**53  # larger integers lose precision in some JSON readers
THINK_OPEN: Final = THINK_OPENING
THINK_CLOSE: Final = "</think>"
_BLANK: Final = re.compile(r"\s*")


class AnswerSizeLimit:
    """Counts the characters of an answer, and refuses one that grows too large."""

    def __init__(self) -> None:
        self._chars = 0

    def grow(self, chars: int) -> None:
        """Add characters that the assembler keeps."""
        self._chars += chars
        if self._chars > PROVIDER_ANSWER_CHARS_MAX:
            raise UnreadableResponseError(
                f"the answer has more than {PROVIDER_ANSWER_CHARS_MAX} characters"
            )


def decode_json(body: bytes | str, where: str) -> JsonValue:
    """Return the JSON value in `body`, or raise UnreadableResponseError."""
    try:
        value = msgspec.json.decode(body)
        require_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError, NotJsonError) as error:
        raise UnreadableResponseError(f"{where} is not JSON ({type(error).__name__})") from None
    return value


def arguments_in(text: str, where: str) -> JsonValue:
    """Return the arguments a model wrote as JSON text; text that is no JSON comes back as it is."""
    if len(text.encode("utf-8", "surrogatepass")) > TOOL_ARGUMENTS_BYTES_MAX:
        raise UnreadableResponseError(
            f"{where} has more than {TOOL_ARGUMENTS_BYTES_MAX} bytes of arguments"
        )
    if not text.strip():
        return {}  # several servers send nothing for a tool that takes nothing
    try:
        return decode_json(text, where)
    except UnreadableResponseError:
        return sound_text(text, where)


def bounded_arguments(value: JsonValue, where: str) -> JsonValue:
    """Return arguments that came as JSON already, or raise when they are too large."""
    if len(msgspec.json.encode(value)) > TOOL_ARGUMENTS_BYTES_MAX:
        raise UnreadableResponseError(
            f"{where} has more than {TOOL_ARGUMENTS_BYTES_MAX} bytes of arguments"
        )
    return value


def sound_text(text: str, where: str) -> str:
    """Return the text, or raise when it holds a lone surrogate."""
    try:
        require_json(text)
    except NotJsonError:
        raise UnreadableResponseError(f"{where} holds text that is not Unicode") from None
    return text


def as_object(value: JsonValue, where: str) -> dict[str, Any]:
    """Return the value as an object."""
    if not isinstance(value, dict):
        raise _unfit(where, "an object", value)
    return value


def as_list(value: JsonValue, where: str) -> list[Any]:
    """Return the value as a list."""
    if not isinstance(value, list):
        raise _unfit(where, "a list", value)
    return value


def text_at(holder: dict[str, Any], key: str, where: str = "the answer") -> str:
    """Return the text under a key that has to be there."""
    value = holder.get(key)
    if not isinstance(value, str):
        raise _unfit(f"`{key}` in {where}", "text", value)
    return value


def optional_text(holder: dict[str, Any], key: str, where: str = "the answer") -> str | None:
    """Return the text under a key, or nothing when it is absent or null."""
    return None if holder.get(key) is None else text_at(holder, key, where)


def name_at(holder: dict[str, Any], key: str, where: str = "the answer") -> str:
    """Return the text under a key that has to be there and must not be empty."""
    value = text_at(holder, key, where)
    if not value:
        raise UnreadableResponseError(f"`{key}` in {where} is empty")
    return value


def count_at(holder: dict[str, Any], key: str, where: str = "the answer") -> int:
    """Return the whole number under a key; absent or null counts as zero."""
    value = holder.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _COUNT_MAX:
        raise _unfit(f"`{key}` in {where}", "a count", value)
    return value


def optional_object(holder: dict[str, Any], key: str, where: str) -> dict[str, Any] | None:
    """Return the object under a key, or nothing when it is absent or null."""
    value = holder.get(key)
    return None if value is None else as_object(value, f"`{key}` in {where}")


def optional_list(holder: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return the list under a key; absent or null counts as empty."""
    value = holder.get(key)
    return [] if value is None else as_list(value, f"`{key}` in {where}")


def _unfit(where: str, expected: str, value: JsonValue) -> UnreadableResponseError:
    actual = "missing or null" if value is None else f"a {type(value).__name__}"
    return UnreadableResponseError(f"{where} should be {expected} but is {actual}")


class SplitText(NamedTuple):
    """The reasoning and the answer in a text."""

    thoughts: str
    words: str


def split_thoughts(text: str) -> SplitText:
    """Split the leading `<think>` sections of an answer from its text."""
    thoughts, at = list[str](), 0
    while text.startswith(THINK_OPEN, start := _first_letter(text, at)):
        begin = start + len(THINK_OPEN)
        end = text.find(THINK_CLOSE, begin)
        if end < 0:
            thoughts.append(text[begin:])
            at = len(text)
            break
        thoughts.append(text[begin:end])
        at = end + len(THINK_CLOSE)
    if not thoughts:
        return SplitText("", text)
    return SplitText("\n\n".join(filter(None, map(str.strip, thoughts))), text[at:].lstrip())


def _first_letter(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


class ThinkingSplitter:
    """Splits one streamed text into answer and reasoning while it grows."""

    def __init__(self) -> None:
        self._is_words = False
        self._is_thought = False
        self._had_thought = False
        self._pending = ""  # may be the beginning of a tag
        self._blank: list[str] = []

    def feed(self, piece: str) -> list[AnswerProgress]:
        """Add a piece of text; return the progress it makes."""
        return list(self._progress(piece))

    def _progress(self, piece: str) -> Iterator[AnswerProgress]:
        text, at = self._pending + piece, 0
        self._pending = ""
        while at < len(text) and not self._is_words:
            if self._is_thought:
                end = text.find(THINK_CLOSE, at)
                self._is_thought = end < 0
                upto = end if end >= 0 else self._hold_back_mark(text, at)
                if upto > at:
                    yield ThinkingGrew(text=text[at:upto])
                at = len(text) if end < 0 else end + len(THINK_CLOSE)
                continue
            start = _first_letter(text, at)
            self._blank.append(text[at:start])
            at = start
            if text.startswith(THINK_OPEN, at):
                self._is_thought, self._had_thought = True, True
                at += len(THINK_OPEN)
            elif len(text) - at < len(THINK_OPEN) and THINK_OPEN.startswith(text[at:]):
                self._pending, at = text[at:], len(text)
            else:
                self._is_words = True
                if not self._had_thought:
                    yield TextGrew(text="".join(self._blank) + text[at:])
                    return
        if at < len(text):
            yield TextGrew(text=text[at:])

    def _hold_back_mark(self, text: str, at: int) -> int:
        """Hold back a possible beginning of the closing tag; return its position."""
        longest = min(len(THINK_CLOSE) - 1, len(text) - at)
        held_count = next(
            (n for n in range(longest, 0, -1) if THINK_CLOSE.startswith(text[-n:])), 0
        )
        self._pending = text[len(text) - held_count :]
        return len(text) - held_count


def may_be_empty(conversation: Sequence[ConversationMessage]) -> bool:
    """Whether only results of its calls follow the model's last message."""
    newest = conversation[-1].blocks if conversation else ()
    return bool(newest) and all(isinstance(block, ToolResultBlock) for block in newest)


def opaque_block(item: Mapping[str, JsonValue], origin: str) -> OpaqueBlock | None:
    """Return what a provider did by itself, to be sent back as it came; nothing when too large."""
    content = msgspec.json.encode(item).decode()
    if len(content) > PROVIDER_OPAQUE_CHARS_MAX:
        return None
    return OpaqueBlock(content=content, origin=origin)


def finished_answer(
    blocks: Sequence[AssistantBlock],
    stop_reason: StopReason,
    usage: TokenUsage | None,
    *,
    allow_empty: bool = False,
) -> ModelAnswer:
    """Return the answer, or raise UnreadableResponseError for an unusable one."""
    nonempty = tuple(
        block for block in blocks if not (isinstance(block, TextBlock) and not block.text)
    )
    calls = tool_uses_of(nonempty)
    is_silent = all(isinstance(block, OpaqueBlock) for block in nonempty)
    was_cut = bool(nonempty) and stop_reason is StopReason.MAX_TOKENS
    may_end = allow_empty and stop_reason is StopReason.END_TURN
    if is_silent and not was_cut and not may_end:
        raise UnreadableResponseError("the answer is empty: no text, no call", usage=usage)
    if stop_reason is StopReason.TOOL_USE and not calls:
        raise UnreadableResponseError("the model stopped for a tool and named none", usage=usage)
    if len({call.call_id for call in calls}) < len(calls):
        raise UnreadableResponseError("the answer repeats a tool call id", usage=usage)
    return ModelAnswer(blocks=nonempty, stop_reason=stop_reason, usage=usage)
