"""JSON that a caller sends, read so that nobody could read it otherwise.

Owns:  what is asked of a request's body beyond what records are asked for.
Rule 1: a name that comes twice in an object is refused: readers differ on which one counts.
Rule 2: a NUL in a text is refused: what prints, compares or stores it may stop there.
"""

import json
import re
from typing import Final, TypeVar

from holon.model.errors import BadSyntaxError
from holon.model.json_value import JsonValue
from holon.wire.codec import decode

T = TypeVar("T")

_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def decode_body(data: bytes, kind: type[T]) -> T:
    """Return the value of this type that a body holds, or raise a DecodeError."""
    value = decode(data, kind)  # first: it bounds nesting, and says best what is wrong
    if _NUL.search(data) is not None:
        raise BadSyntaxError("a text holds a NUL character", hint="leave it out")
    try:
        json.loads(data, object_pairs_hook=_unrepeated, parse_int=str, parse_float=str)
    except RecursionError:
        raise BadSyntaxError("JSON nested too deeply to read") from None
    return value


def _unrepeated(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadSyntaxError(f"{twice[:80]!r} is given twice in one object")
    return found
