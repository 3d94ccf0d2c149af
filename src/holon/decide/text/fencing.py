"""Fencing: untrusted text, delimited and made visible.

Owns:  the fence around a body, and the neutralising of what could mislead a reader inside it.
Rule 1: a fence is named by a digest of the content's id. The content's author could not know the
        id, and a body that holds the name all the same gets it broken. The name is the same each
        time the content is shown: a delimiter that is new in every prompt would change the bytes of
        the history and miss the provider's cache.
Rule 2: invisible characters are made visible: control characters, zero-width characters, tags and
        overrides of direction. Joiners and marks inside a script that uses them stay.
Rule 3: untrusted text cannot imitate a role, a label or a heading of the runtime: the first
        character of such text is changed, visibly. The operator's text is left as it is.
Rule 4: the cost per character is constant, whatever the text: a run of blanks is scanned once, by
        possessive quantifiers.
Rule 5: every function here returns text for the inside of a fence, so a body never loses its label.
"""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Final

from holon.decide.text.bounded import both_ends, shortened
from holon.model.text_size import cut, readable_prefix, utf8_bytes

_KEY_CHARS: Final = 12
_HALF: Final = _KEY_CHARS // 2
_BROKEN: Final = "·"
_BLUNT: Final = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
_BAR: Final = "¦ "
# What disarming again the two lines a cut ends and begins with may add: two bars, a blunted token.
_REARMED_BYTES_MAX: Final = 8

_FENCE_LINE: Final = re.compile(rf"^<(?P<closes>/?)(?P<name>body-[0-9a-f]{{{_KEY_CHARS}}})>$", re.M)
# The end of one fence, the beginning of another, and what the lines at the cut may grow by.
_MENDED_BYTES_MAX: Final = 2 * len(f"\n</body-{'0' * _KEY_CHARS}>") + _REARMED_BYTES_MAX

# Joiners and direction marks belong to some scripts; selectors belong to some emoji.
_MARKS: Final = "\u061c\u200c-\u200f\ufe00-\ufe0f"
_NEVER: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U000e0000-\U000e0fff"
)
_HIDDEN: Final = re.compile(f"[{_MARKS}{_NEVER}]+|\r(?!\n)")
_TAGS: Final = re.compile("[\U000e0000-\U000e0fff]+")
_MARK: Final = re.compile(f"[{_MARKS}]")

_LABELS: Final = "external_evidence|operator_instruction|runtime_instruction|integration_signal"
_ROLES: Final = "system|developer|assistant|user|human|operator|tool|function"


def fence_name(content_id: str) -> str:
    """Return the name of the fence around the content of this id."""
    return f"body-{sha256(content_id.encode()).hexdigest()[:_KEY_CHARS]}"


def fenced(
    body: str,
    *,
    content_id: str,
    by_operator: bool = False,
    body_bytes_max: int | None = None,
) -> str:
    """Return a body inside its fence; what does not fit is left out of its middle."""
    name = fence_name(content_id)
    if body_bytes_max is None:
        content = visible(body) if by_operator else disarmed(body)
    elif by_operator:
        content = shortened(visible(body), bytes_max=body_bytes_max).text
    else:
        content = disarmed_within(body, bytes_max=body_bytes_max)
    head, tail = name[:-_HALF], name[-_HALF:]
    if name in content:
        content = re.sub(f"{head}(?={tail})", head + _BROKEN, content)
    return f"<{name}>\n{content}\n</{name}>"


def disarmed(text: str) -> str:
    """Return untrusted text so that nothing in it is hidden or looks like part of a prompt."""
    token, line = _patterns()
    return line.sub(_BAR, token.sub(_BLUNT, visible(text)))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What looks like a token of a prompt, and how a line begins that looks like one of a prompt.

    Compiled on first use: a run with operator input alone needs neither expression.
    """
    token = re.compile(
        rf"<(?=\s*+/?\s*+(?:\||<\s*+/?sys\b|body-|antml|im_(?:start|end|sep)\b|(?:start|end)_of_turn\b"
        rf"|endoftext\b|/?s>|(?:{_LABELS}|{_ROLES})[\w-]*+[>/\s]))"
        r"|\[(?=\s*+/?\s*+INST\s*+\])",
        re.IGNORECASE,
    )
    line = re.compile(
        rf"^(?=[ \t]*+(?:(?:{_ROLES})[ \t]*+:|(?:authority|surface|admission|origin)[ \t]*+:"
        r"|\[(?:message|operator message|earlier message|runtime|carried)\b"
        rf"|\#{{1,6}}+[ \t]*+(?:{_ROLES}|instructions?|response)\b[ \t]*+:?[ \t]*+$))",
        re.IGNORECASE | re.MULTILINE,
    )
    return token, line


def disarmed_within(text: str, *, bytes_max: int) -> str:
    """Return untrusted text within a number of bytes; a cut keeps every line disarmed."""
    disarmed_text = disarmed(text)
    if utf8_bytes(disarmed_text) <= bytes_max:
        return disarmed_text
    return disarmed(shortened(disarmed_text, bytes_max=max(0, bytes_max - _REARMED_BYTES_MAX)).text)


def cut_between_fences(text: str, *, bytes_max: int) -> str:
    """Return runtime text within a number of bytes; a body that is cut stays in its fence."""
    if utf8_bytes(text) <= bytes_max:
        return text
    ends = both_ends(text, bytes_max=max(0, bytes_max - _MENDED_BYTES_MAX))
    assert ends is not None, "it does not fit"
    head, mark, tail = ends
    fences = tuple(_FENCE_LINE.finditer(text))
    before, after = len(head), len(text) - len(tail)
    for fence in fences:  # half a fence is none
        before = fence.start() if fence.start() < before < fence.end() else before
        after = fence.end() if fence.start() < after < fence.end() else after
    head, tail = text[:before], text[after:]
    opened, closed = _open_at(fences, before), _open_at(fences, after)
    if opened is not None:
        lines, _, last = head.rpartition("\n")
        head = f"{lines}\n{_rearmed(last)}"
    if closed is not None:
        first, end, rest = tail.partition("\n")
        tail = f"{_rearmed(first)}{end}{rest}"
    if opened == closed:
        return head + mark + tail
    head = head if opened is None else f"{head}\n</{opened}>"
    return head + mark + (tail if closed is None else f"<{closed}>\n{tail}")


def _rearmed(line: str) -> str:
    """Disarm half a line. One that grows by more was the operator's, and is shown as it is."""
    disarmed_line = line if _FENCE_LINE.fullmatch(line) else disarmed(line)
    return (
        disarmed_line
        if utf8_bytes(disarmed_line) - utf8_bytes(line) <= _REARMED_BYTES_MAX // 2
        else line
    )


def _open_at(fences: Sequence[re.Match[str]], at: int) -> str | None:
    """Return the name of the fence that is open at a place."""
    last = next((fence for fence in reversed(fences) if fence.end() <= at), None)
    return None if last is None or last["closes"] else last["name"]


def visible(text: str) -> str:
    """Return a text whose every character can be seen."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_visible_form, text)


def without_tags(text: str) -> str:
    """Return a text without the characters that only ever hide another text; they are counted."""
    return text if text.isascii() else _TAGS.sub(_visible_form, text)


def quoted(text: str) -> str:
    """Return untrusted text for a runtime line: on one line, and nothing hidden in it."""
    return " ".join(visible(text).split())


def quoted_line(text: str, *, chars_max: int) -> str:
    """Return untrusted text as `quoted` does, within a number of characters."""
    return cut(quoted(readable_prefix(text, chars_max=chars_max)), chars_max=chars_max)


def _visible_form(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) > 1:
        return f"⟨{len(run)} hidden characters, U+{ord(run[0]):04X}…⟩"
    if _MARK.match(run) and _is_among_letters(match):
        return run
    return f"⟨U+{ord(run):04X}⟩"


def _is_among_letters(match: re.Match[str]) -> bool:
    """Whether a mark stands beside a character of a script, or an emoji, that may need it."""
    text, start, end = match.string, match.start(), match.end()
    beside = text[start - 1 : start] + text[end : end + 1]
    return not beside.isascii()
