"""Secret redaction: finding secrets in text, in the forms in which they leave.

Owns:  the forms (raw, URL-encoded, JSON-escaped, base64, hexadecimal), the matcher, and its
       streaming twin; redacted tool outcomes and output excerpts.
Rule 1: a match is replaced by `[secret:NAME]`; the value itself appears nowhere.
Rule 2: a value shorter than SECRET_CHARS_MIN is not looked for: it would hide half of every text.
Rule 3: overlapping matches are hidden as one, so that no tail of the longer one is left over.
Rule 4: whether a match begins at a position depends on at most `chars_max` characters from there;
        so any chunking gives the same text as the whole.
Rule 5: a form is a sequence of pieces, one for each sign of the secret, and no encoding of a piece
        is a prefix of another: the end of a match is decided by its start. So only the first pieces
        are compiled into one expression, and the others are compared one by one at its matches:
        an expression as long as a token takes far too long to compile.
Rule 6: secrets are hidden first, texts are cut afterwards: half a secret is not recognized.
Rule 7: structured values are searched string by string, never as encoded JSON, where hiding could
        take away half of an escape.
Rule 8: the arguments of a tool call are kept as the model wrote them, since a resumed turn has to
        run and answer exactly that call; every other view of them is redacted. A tool that only
        plans gets redacted arguments, so that no record it plans holds a secret.
Rule 9: where only the ends of an output were read, the margin at each inner edge may hold half a
        secret, and is left out.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import msgspec

from holon.model.limits import COMMAND_OUTPUT_MARGIN_BYTES, SECRET_CHARS_MIN
from holon.model.tasks import CommandRecovery, OutputSpan, TaskRecord
from holon.model.turns.conversation import AssistantBlock, ToolUseBlock
from holon.model.turns.tools import ToolCallRecord, ToolError, ToolOk, ToolOutcome, ToolRefused
from holon.model.turns.transcript import AssistantRound, TranscriptEntry, TurnLog
from holon.model.values import JsonValue

Redact: TypeAlias = Callable[[str], str]

_SHORT_ESCAPES: Final = {
    "\b": "b",
    "\f": "f",
    "\n": "n",
    "\r": "r",
    "\t": "t",
    '"': '"',
    "/": "/",
    "\\": "\\",
}
_MUST_ESCAPE: Final = frozenset('"\\')
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# The two signs that differ between the alphabets, also as they look inside a URL or a JSON text.
_BASE64_SIGNS: Final = {"+": r"(?:\+|-|%2[Bb])", "/": r"(?:/|_|\\/|%2[Ff])"}
_BASE64_SIGN_CHARS_MAX: Final = 3
_PLAIN_RUN: Final = re.compile("[A-Za-z0-9]+")
_HEAD_PIECES_COUNT: Final = 32
_KEPT_COUNT_MAX: Final = 4_096  # pieces that are remembered; they are made of one sign each


class _Match(NamedTuple):
    start: int
    end: int
    name: str


class _RawForm(msgspec.Struct, frozen=True, kw_only=True):
    """A secret as it is, or in an encoding that has one way to write it."""

    name: str
    value: str

    @property
    def chars_max(self) -> int:
        return len(self.value)

    def matches_in(self, text: str) -> Iterator[_Match]:
        start = text.find(self.value)
        while start >= 0:
            yield _Match(start, start + len(self.value), self.name)
            start = text.find(self.value, start + 1)


class _WrittenForm(msgspec.Struct, frozen=True, kw_only=True):
    """A secret in an encoding. A text without any of its `marks` cannot contain it."""

    name: str
    head: re.Pattern[str]
    rest: tuple[str, ...]  # the pieces behind the head
    marks: tuple[str, ...]
    chars_max: int

    def matches_in(self, text: str) -> Iterator[_Match]:
        if not any(mark in text for mark in self.marks):
            return
        match = self.head.search(text)
        while match is not None:
            end = self._end(text, match.end())
            if end is not None:
                yield _Match(match.start(), end, self.name)
            match = self.head.search(text, match.start() + 1)

    def _end(self, text: str, at: int) -> int | None:
        for piece in self.rest:
            match = _compiled(piece).match(text, at)
            if match is None:
                return None
            at = match.end()
        return at


class SecretShape(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets that are recognized by their form, whatever their value."""

    name: str
    looks_like: re.Pattern[str]
    mark: str  # a text without it contains none of them
    chars_max: int

    def matches_in(self, text: str) -> Iterator[_Match]:
        """Return where they are."""
        if self.mark not in text:
            return
        match = self.looks_like.search(text)
        while match is not None:
            yield _Match(match.start(), match.end(), self.name)
            match = self.looks_like.search(text, match.start() + 1)


_Form: TypeAlias = _RawForm | _WrittenForm | SecretShape


class SecretMatcher:
    """Knows a set of secrets, once and for all. Of two names for one value the later counts."""

    def __init__(
        self, secrets: Iterable[tuple[str, str]], *, shapes: tuple[SecretShape, ...] = ()
    ) -> None:
        self._shapes = shapes
        self._know(
            {
                value: tuple(_forms_of(name, value))
                for name, value in secrets
                if len(value) >= SECRET_CHARS_MIN
            }
        )

    def knowing(self, name: str, value: str, *, instead_of: str | None = None) -> "SecretMatcher":
        """Return a matcher that knows one secret more; what is known is not built again."""
        grown = SecretMatcher([(name, value)], shapes=self._shapes)
        others = {old: forms for old, forms in self._forms_by_value.items() if old != instead_of}
        grown._know({**others, **grown._forms_by_value})
        return grown

    def _know(self, forms_by_value: Mapping[str, tuple[_Form, ...]]) -> None:
        self._forms_by_value = forms_by_value
        known = (form for forms in forms_by_value.values() for form in forms)
        self._forms: tuple[_Form, ...] = (*self._shapes, *known)
        self.chars_max = max((form.chars_max for form in self._forms), default=0)

    def redact(self, text: str) -> str:
        """Return the text with every secret replaced by its mark."""
        if not self._matches_in(text, len(text)):
            return text
        redacted, _ = self.redact_part(text, until=len(text), begin=0)
        return redacted

    def redact_part(self, text: str, *, until: int, begin: int) -> tuple[str, int]:
        """Redact text[begin:until]; also return where the next part begins.

        Findings that start before `until` are hidden whole, so the next part may begin behind it.
        """
        pieces: list[str] = []
        at = begin
        for start, end, name in self._matches_in(text, until):
            if start < at:
                at = max(at, end)
                continue
            pieces += (text[at:start], f"[secret:{name}]")
            at = end
        if at < until:
            pieces.append(text[at:until])
            at = until
        return "".join(pieces), at

    def _matches_in(self, text: str, until: int) -> Sequence[_Match]:
        matches = [each for form in self._forms for each in form.matches_in(text)]
        return sorted(
            (each for each in matches if each.start < until),
            key=lambda each: (each.start, -each.end, each.name),
        )


class Redacting:
    """A stream of text with its secrets hidden, however it is cut into chunks."""

    def __init__(self, matcher: SecretMatcher) -> None:
        self._matcher = matcher
        self._held = ""
        self._begin = 0  # what lies before it in the held text belongs to a mark already given

    def feed(self, chunk: str) -> str:
        """Return the text that no later chunk can change any more."""
        text = self._held + chunk
        until = max(0, len(text) - max(0, self._matcher.chars_max - 1))
        return self._advance(text, until)

    def finish(self) -> str:
        """Return what was still held back."""
        return self._advance(self._held, len(self._held))

    def _advance(self, text: str, until: int) -> str:
        redacted, begin = self._matcher.redact_part(text, until=until, begin=self._begin)
        self._held = text[until:]
        self._begin = max(0, begin - until)
        return redacted


def _forms_of(name: str, value: str) -> Iterator[_Form]:
    if value in f"[secret:{name}]":
        name = "unnamed"  # a name that contains the value would undo its own mark
    yield _RawForm(name=name, value=value)
    data = value.encode(errors="surrogatepass")
    # Characters that are sent as they are make these two the raw form, which is looked for above.
    url = [_url_form(char) for char in value]
    yield _written(name, url, marks=("%", "+"), chars_max=3 * len(data))
    json = [_json_form(char) for char in value]
    yield _written(name, json, marks=("\\",), chars_max=12 * len(value))
    for shift in range(3):
        yield _base64_form(name, data, shift)
    for digits in (data.hex(), data.hex().upper()):
        yield _RawForm(name=name, value=digits)


def _written(
    name: str, pieces: Sequence[str], *, marks: tuple[str, ...], chars_max: int
) -> _WrittenForm:
    return _WrittenForm(
        name=name,
        head=re.compile("".join(pieces[:_HEAD_PIECES_COUNT])),
        rest=tuple(pieces[_HEAD_PIECES_COUNT:]),
        marks=marks,
        chars_max=chars_max,
    )


@lru_cache(_KEPT_COUNT_MAX)
def _compiled(piece: str) -> re.Pattern[str]:
    return re.compile(piece)


@lru_cache(_KEPT_COUNT_MAX)
def _url_form(char: str) -> str:
    encoded = "".join(f"%{_any_case(byte)}" for byte in char.encode(errors="surrogatepass"))
    if char == "%":
        return encoded
    if char == " ":
        return rf"(?:{encoded}|\+|\ )"
    return f"(?:{re.escape(char)}|{encoded})"


def _any_case(byte: int) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in f"{byte:02x}")


@lru_cache(_KEPT_COUNT_MAX)
def _json_form(char: str) -> str:
    units = char.encode("utf-16-be", errors="surrogatepass")
    digits = "".join(("" if at % 2 else r"\\u") + _any_case(byte) for at, byte in enumerate(units))
    forms = [digits]
    if char in _SHORT_ESCAPES:
        forms.append(re.escape(f"\\{_SHORT_ESCAPES[char]}"))
    if char not in _MUST_ESCAPE:
        forms.append(re.escape(char))
    return f"(?:{'|'.join(forms)})"


def _base64_form(name: str, data: bytes, shift: int) -> _WrittenForm:
    """The secret inside base64, `shift` bytes behind a boundary of three.

    The first and the last sign may share their six bits with a neighbour: any sign is accepted
    there whose bits agree with the secret's.
    """
    whole = base64.b64encode(b"\0" * shift + data + b"\0" * (-(shift + len(data)) % 3)).decode()
    first, last = 8 * shift, 8 * (shift + len(data))  # the bits that belong to the secret
    signs = whole[first // 6 : -(-last // 6)]
    inner = signs[1 if first % 6 else 0 : -1 if last % 6 else None]
    head = [_agreeing(signs[0], mask=(1 << (6 - first % 6)) - 1)] if first % 6 else []
    tail = [_agreeing(signs[-1], mask=0b111111 ^ ((1 << (6 - last % 6)) - 1))] if last % 6 else []
    return _written(
        name,
        [*head, *(_BASE64_SIGNS.get(sign, sign) for sign in inner), *tail],
        marks=(max(_PLAIN_RUN.findall(inner), key=len, default=""),),
        chars_max=_BASE64_SIGN_CHARS_MAX * len(signs),
    )


def _agreeing(sign: str, *, mask: int) -> str:
    """Any sign that has the same bits under the mask."""
    bits = _BASE64.index(sign) & mask
    options = [option for at, option in enumerate(_BASE64) if at & mask == bits]
    return f"(?:{'|'.join(_BASE64_SIGNS.get(option, option) for option in options)})"


def outcome_without_secrets(outcome: ToolOutcome, redact: Redact) -> ToolOutcome:
    """Return what came of a call as model and transcript may see it."""
    match outcome:
        case ToolOk():
            return msgspec.structs.replace(
                outcome,
                result=value_without_secrets(outcome.result, redact),
                notes=tuple(redact(note) for note in outcome.notes),
            )
        case ToolRefused(error=error):
            return ToolRefused(error=_error_without_secrets(error, redact))


def _error_without_secrets(error: ToolError, redact: Redact) -> ToolError:
    return msgspec.structs.replace(
        error,
        message=redact(error.message),
        hint=None if error.hint is None else redact(error.hint),
        field=None if error.field is None else redact(error.field),
        details=value_without_secrets(error.details, redact),
    )


def call_without_secrets(call: ToolCallRecord, redact: Redact) -> ToolCallRecord:
    """Return a redacted call; the same object where it holds no secret."""
    hidden = value_without_secrets(call.input, redact)
    return call if hidden == call.input else msgspec.structs.replace(call, input=hidden)


def task_without_secrets(task: TaskRecord, redact: Redact) -> TaskRecord:
    """Return a task with its command as it may be shown."""
    recovery = task.recovery
    if not isinstance(recovery, CommandRecovery):
        return task
    spec = msgspec.structs.replace(recovery.spec, cmd=redact(recovery.spec.cmd))
    return msgspec.structs.replace(task, recovery=msgspec.structs.replace(recovery, spec=spec))


def log_without_secrets(log: TurnLog, redact: Redact) -> TurnLog:
    """Return a turn with its calls as they may be shown; the very same with nothing to hide."""
    calls = tuple(
        msgspec.structs.replace(each, call=call_without_secrets(each.call, redact))
        for each in log.calls
    )
    entries = tuple(_entry_without_secrets(entry, redact) for entry in log.entries)
    if calls == log.calls and entries == log.entries:
        return log
    return msgspec.structs.replace(log, calls=calls, entries=entries)


def _entry_without_secrets(entry: TranscriptEntry, redact: Redact) -> TranscriptEntry:
    if not isinstance(entry.data, AssistantRound):
        return entry
    blocks = entry.data.spoke.blocks
    hidden = tuple(_block_without_secrets(block, redact) for block in blocks)
    if hidden == blocks:
        return entry
    answer = msgspec.structs.replace(entry.data.spoke, blocks=hidden)
    return msgspec.structs.replace(entry, data=msgspec.structs.replace(entry.data, spoke=answer))


def _block_without_secrets(block: AssistantBlock, redact: Redact) -> AssistantBlock:
    if not isinstance(block, ToolUseBlock):
        return block
    return msgspec.structs.replace(block, input=value_without_secrets(block.input, redact))


def value_without_secrets(value: JsonValue, redact: Redact) -> JsonValue:
    """Return a JSON value with secrets hidden in its texts and names."""
    match value:
        case str():
            return redact(value)
        case list() | tuple():
            return [value_without_secrets(item, redact) for item in value]
        case dict():
            return {redact(key): value_without_secrets(item, redact) for key, item in value.items()}
        case _:
            return value


def span_without_secrets(span: OutputSpan, redact: Redact) -> OutputSpan:
    """Return an output excerpt without its secrets; its size is what is left to be shown.

    The look must have gone COMMAND_OUTPUT_MARGIN_BYTES further than will be shown.
    """
    read = len(span.head) + len(span.tail)
    if read >= span.total_bytes:
        whole = _hidden_bytes(span.head + span.tail[read - span.total_bytes :], redact)
        return msgspec.structs.replace(span, head=whole, tail=b"", total_bytes=len(whole))
    head, tail = _hidden_bytes(span.head, redact), _hidden_bytes(span.tail, redact)
    return msgspec.structs.replace(
        span,
        head=head[:-COMMAND_OUTPUT_MARGIN_BYTES],
        tail=tail[COMMAND_OUTPUT_MARGIN_BYTES:],
        total_bytes=span.total_bytes - read + len(head) + len(tail),
    )


def _hidden_bytes(data: bytes, redact: Redact) -> bytes:
    text = data.decode(errors="surrogateescape")  # which gives every byte back
    hidden = redact(text)
    return data if hidden == text else hidden.encode(errors="surrogateescape")
