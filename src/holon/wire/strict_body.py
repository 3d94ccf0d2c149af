"""JSON that a caller sends, read so that nobody could read it otherwise.

Owns:  what is asked of a request's body beyond what records are asked for.
Rule 1: a name that comes twice in an object is refused: readers differ on which one counts.
Rule 2: a NUL in a text is refused: what prints, compares or stores it may stop there.
"""

import json
import re
from typing import Final, TypeVar

from holon.model.errors import BadSyntaxError, DecodeError
from holon.model.json_value import JsonValue
from holon.wire.body_faults import SYNTAX_HINT, explained, field_of_text
from holon.wire.codec import decode

T = TypeVar("T")

_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_PLAIN_NUL: Final = re.compile("\0")


def decode_body(data: bytes, kind: type[T]) -> T:
    """Return the value of this type that a body holds, or raise a DecodeError."""
    try:
        value = decode(data, kind)  # first: it bounds nesting, and says best what is wrong
    except DecodeError as error:
        raise explained(error, data, kind) from None
    if _NUL.search(data) is not None:
        field = field_of_text(data, _PLAIN_NUL)
        raise BadSyntaxError(
            "a text holds a NUL character", hint="leave it out", field=field or None
        )
    try:
        json.loads(data, object_pairs_hook=unrepeated, parse_int=str, parse_float=str)
    except RecursionError:
        raise BadSyntaxError("JSON nested too deeply to read", hint=SYNTAX_HINT) from None
    return value


def unrepeated(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return an object, or raise BadSyntaxError when it has a name twice; each is seen once."""
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in found:
            raise BadSyntaxError(
                f"{name[:80]!r} is given twice in one object", hint="give it once", field=name[:80]
            )
        found[name] = value
    return found
