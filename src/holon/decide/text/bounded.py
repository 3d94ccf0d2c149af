"""Bounded output: any bytes as text of a known size.

Owns:  the head and tail view of output, and how a budget is shared among streams.
Rule 1: output that fits is shown whole; otherwise its beginning and end are kept, with a line
        between them that says how much was left out.
Rule 2: a cut never splits a character; invalid UTF-8 becomes replacement characters.
Rule 3: a single line that is cut keeps whole words.
Rule 4: a budget is counted in bytes before decoding, so the text has at most as many characters.
Rule 5: an answer is cut before any of it is stored. Calls are never cut, since a cut call would do
        something else; an answer whose calls are too large is unusable. Thinking and opaque
        provider blocks are kept whole or dropped whole.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from holon.model.limits import (
    ANSWER_CALLS_BYTES_MAX,
    ANSWER_TEXT_BYTES_MAX,
    ANSWER_TOKEN_BYTES_MAX,
    ESTIMATED_TOKEN_BYTES,
    SURFACE_TEXT_CHARS_MAX,
    TOOL_OUTPUT_TOKENS_DEFAULT,
    TOOL_OUTPUT_TOKENS_MAX,
)
from holon.model.providers.attempts import TransportDiagnostics
from holon.model.record import Record
from holon.model.tasks import OutputSpan, OutputStream
from holon.model.text_size import utf8_bytes
from holon.model.turns.conversation import (
    AssistantBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    tool_uses_of,
)
from holon.model.turns.turn import ModelAnswer

_ENDS_WORD: Final = re.compile(r"""[\s"'`=,;|&(){}\[\]<>]""")


_CUT_NOTE: Final = "the text of the answer was cut from {} to {} bytes, the most that is kept of it"
_DROPPED_NOTE: Final = "{} bytes of {} were dropped, more than is kept of an answer"
# What is kept whole or not at all: a part of it could not be sent back.
_UNCUT: Final = ((ThinkingBlock, "thinking"), (OpaqueBlock, "what the provider did by itself"))


class BoundedText(Record, frozen=True, kw_only=True):
    """Text within its budget, and whether something was left out."""

    text: str
    truncated: bool = False


class OutputBudget(Record, frozen=True, kw_only=True):
    """How much of a command's output a model is shown, in estimated tokens."""

    default_tokens: int = TOOL_OUTPUT_TOKENS_DEFAULT
    tokens_max: int = TOOL_OUTPUT_TOKENS_MAX

    def bytes_for(self, asked_tokens: int | None) -> int:
        """Return how many bytes of output a model sees for a requested number of tokens."""
        tokens = self.default_tokens if asked_tokens is None else asked_tokens
        return min(tokens, self.tokens_max) * ESTIMATED_TOKEN_BYTES


def bounded(text: str, *, chars_max: int = SURFACE_TEXT_CHARS_MAX) -> BoundedText:
    """Return the beginning of a text for a view, and whether there was more."""
    return BoundedText(text=text[:chars_max], truncated=len(text) > chars_max)


def preview_of(span: OutputSpan, *, bytes_max: int) -> BoundedText:
    """Return one stream as text of at most `bytes_max` bytes of output."""
    head, tail = span.head, span.tail
    read_count = len(head) + len(tail)
    if read_count > span.total_bytes:  # the two looks overlap
        tail = tail[read_count - span.total_bytes :]
        read_count = span.total_bytes
    if read_count == span.total_bytes <= bytes_max:
        return BoundedText(text=_decoded(head + tail))
    if read_count == span.total_bytes:
        head = tail = head + tail
    kept_head = _without_half_character(head[: bytes_max - bytes_max // 2])
    kept_tail = _from_whole_character(_last(tail, bytes_max // 2))
    left_out = span.total_bytes - len(kept_head) - len(kept_tail)
    mark = f"\n[… {left_out} bytes left out …]\n"
    return BoundedText(text=_decoded(kept_head) + mark + _decoded(kept_tail), truncated=True)


def shortened(text: str, *, bytes_max: int) -> BoundedText:
    """Return a text within a number of bytes, including the line that marks the cut."""
    ends = both_ends(text, bytes_max=bytes_max)
    return (
        BoundedText(text=text) if ends is None else BoundedText(text="".join(ends), truncated=True)
    )


def both_ends(text: str, *, bytes_max: int) -> tuple[str, str, str] | None:
    """Return the beginning, the cut marker, and the end; None when the text fits."""
    data = text.encode()
    if len(data) <= bytes_max:
        return None
    mark_bytes = len(f"\n[… {len(data)} bytes left out …]\n".encode())
    bytes_left = bytes_max - mark_bytes
    if bytes_left < mark_bytes:  # too little for two ends
        return _decoded(_without_half_character(data[:bytes_max])), "", ""
    head = _without_half_character(data[: bytes_left - bytes_left // 2])
    tail = _from_whole_character(_last(data, bytes_left // 2))
    mark = f"\n[… {len(data) - len(head) - len(tail)} bytes left out …]\n"
    return _decoded(head), mark, _decoded(tail)


def beginning_of(text: str, *, chars_max: int) -> str:
    """Return the beginning of a text that fits, without a word that would be cut in two.

    Half a word may be half a secret, which redaction no longer recognizes.
    """
    if len(text) <= chars_max:
        return text
    beginning = text[: chars_max - 1]
    if not _ENDS_WORD.match(text[chars_max - 1]):
        beginning = beginning[
            : max((match.end() for match in _ENDS_WORD.finditer(beginning)), default=0)
        ]
    return beginning + "…"


def previews_of(spans: Sequence[OutputSpan], *, bytes_max: int) -> tuple[BoundedText, ...]:
    """Return every stream; those that hold something share the budget evenly."""
    speaking = sum(1 for span in spans if span.total_bytes)
    share = bytes_max // max(speaking, 1)
    return tuple(preview_of(span, bytes_max=share) for span in spans)


def transcript_of(spans: Sequence[OutputSpan], *, bytes_max: int) -> BoundedText:
    """Return all streams as one text; if several have output, each is introduced by its name."""
    by_stream = [
        (span.stream, text)
        for span, text in zip(spans, previews_of(spans, bytes_max=bytes_max), strict=True)
        if text.text
    ]
    if len(by_stream) == 1 and by_stream[0][0] is not OutputStream.STDERR:
        return by_stream[0][1]
    sections = (f"[{stream.value}]\n{preview.text}" for stream, preview in by_stream)
    return BoundedText(
        text="\n".join(sections), truncated=any(preview.truncated for _, preview in by_stream)
    )


def _last(data: bytes, count: int) -> bytes:
    return data[-count:] if count else b""


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _without_half_character(data: bytes) -> bytes:
    """Drop the beginning of a character that the cut took the rest of."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue  # the inside of a character: look further back for its first byte
        return data[:-back] if _length_announced(byte) > back else data
    return data


def _length_announced(first: int) -> int:
    if first >= 0b1111_0000:
        return 4
    if first >= 0b1110_0000:
        return 3
    return 2 if first >= 0b1100_0000 else 1


def _from_whole_character(data: bytes) -> bytes:
    """Drop the end of a character that the cut took the beginning of."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0b1100_0000 == 0b1000_0000:
        start += 1
    return data[start:]


def answer_bytes_max(output_tokens_max: int | None) -> int:
    """Return how much text is kept of an answer by a model with this output limit."""
    if output_tokens_max is None:
        return ANSWER_TEXT_BYTES_MAX
    return min(output_tokens_max * ANSWER_TOKEN_BYTES_MAX, ANSWER_TEXT_BYTES_MAX)


def bounded_answer(answer: ModelAnswer, *, bytes_max: int) -> ModelAnswer:
    """Return what is kept of an answer; raises ValueError when its calls are too large."""
    calls_bytes = sum(len(msgspec.json.encode(use.input)) for use in tool_uses_of(answer.blocks))
    if calls_bytes > ANSWER_CALLS_BYTES_MAX:
        raise ValueError(f"its calls have {calls_bytes} bytes of arguments")
    text_bytes = sum(utf8_bytes(b.text) for b in answer.blocks if isinstance(b, TextBlock))
    notes: list[str] = []
    blocks: Sequence[AssistantBlock] = answer.blocks
    if text_bytes > bytes_max:
        blocks = tuple(_texts_within(blocks, bytes_max))
        notes.append(_CUT_NOTE.format(text_bytes, bytes_max))
    for kind, name in _UNCUT:
        size = sum(len(msgspec.json.encode(each)) for each in blocks if isinstance(each, kind))
        if size > ANSWER_TEXT_BYTES_MAX:
            blocks = tuple(block for block in blocks if not isinstance(block, kind))
            notes.append(_DROPPED_NOTE.format(size, name))
    if not notes:
        return answer
    diagnostics = answer.diagnostics or TransportDiagnostics()
    return msgspec.structs.replace(
        answer,
        blocks=tuple(blocks),
        diagnostics=msgspec.structs.replace(diagnostics, notes=(*diagnostics.notes, *notes)),
    )


def _texts_within(blocks: Iterable[AssistantBlock], bytes_max: int) -> Iterator[AssistantBlock]:
    """Yield blocks whose texts have so many bytes together; the first of them go first."""
    bytes_left = bytes_max
    for block in blocks:
        if not isinstance(block, TextBlock):
            yield block
        elif bytes_left > 0:
            text = shortened(block.text, bytes_max=bytes_left).text
            bytes_left -= utf8_bytes(text)
            yield msgspec.structs.replace(block, text=text)
