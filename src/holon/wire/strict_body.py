"""JSON that a caller sends, read so that nobody could read it otherwise.

Owns:  what is asked of a request's body beyond what records are asked for.
Rule 1: a name that comes twice in an object is refused: readers differ on which one counts.
Rule 2: a number without a fraction is an integer where one belongs, however it is written.
Rule 3: a NUL in a text is refused: what prints, compares or stores it may stop there.
"""

import json
import re
from typing import Final, TypeVar

from holon.decide.schema_parts import PATH_STEP
from holon.model.errors import BadSyntaxError, DecodeError, NotJsonError
from holon.model.json_value import JsonValue
from holon.wire.body_faults import SYNTAX_HINT, explained, field_of_text
from holon.wire.codec import decode, encode

T = TypeVar("T")

_NOT_AN_INTEGER: Final = re.compile(r"Expected `int[^`]*`, got `float`")
_WHOLE_NUMBERS_COUNT_MAX: Final = 16  # more than any request has
_EXACT_MAX: Final = 2**53  # beyond it a number with a point is not exact
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_PLAIN_NUL: Final = re.compile("\0")


def decode_body(data: bytes, kind: type[T]) -> T:
    """Return the value of this type that a body holds, or raise a DecodeError."""
    try:
        value = decode(data, kind)  # first: it bounds nesting, and says best what is wrong
    except DecodeError as error:
        value = _with_whole_numbers(data, kind, error)
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


def _with_whole_numbers(data: bytes, kind: type[T], error: DecodeError) -> T:
    """Read a body once more, with `1000.0` as the integer it is where one belongs.

    JSON knows no integers, and some clients write every number with a point. Only the places that
    were refused for it are changed, one after the other: free JSON stays as it came.
    """
    read: JsonValue = None
    for _ in range(_WHOLE_NUMBERS_COUNT_MAX):
        if _NOT_AN_INTEGER.match(error.message) is None:
            break
        try:
            read = decode(data, object) if read is None else read
            if not _made_whole(read, error.field):
                break
            return decode(encode(read), kind)
        except DecodeError as another:  # behind the number, the body may be no JSON at all
            error = another
        except NotJsonError as another:
            error = BadSyntaxError(another.message)
    raise explained(error, data, kind) from None


def _made_whole(value: JsonValue, path: str | None) -> bool:
    """Put the integer where a path leads to a number without a fraction; False when it does not."""
    *way, last = PATH_STEP.findall(path or "") or [""]
    for step in way:
        value = _inside(value, step)
    number = _inside(value, last)
    if not isinstance(number, float) or not number.is_integer() or abs(number) > _EXACT_MAX:
        return False
    if isinstance(value, list):
        value[int(last[1:-1])] = int(number)
    elif isinstance(value, dict):
        value[last] = int(number)
    return True


def _inside(value: JsonValue, step: str) -> JsonValue:
    if isinstance(value, list) and _INDEX.fullmatch(step):
        return value[int(step[1:-1])]
    return value.get(step) if isinstance(value, dict) else None


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
