"""Request validation errors: what is wrong with a body or query, and how to correct it.

Owns:  the sentence, the field and the hint for a body or a query that does not decode; the checks
       on a request body beyond those on records. Pure.
Rule 1: the accepted alternatives are named: the values of an enum, the fields of an object.
Rule 2: the error keeps its class, and so its code; only its text is improved.
Rule 3: diagnosis costs at most one more parse of the body, and only after it was refused.
Rule 4: a repeated name in an object is refused: readers differ on which one counts.
Rule 5: a number without a fraction is an integer where one is expected, however it is written.
Rule 6: a NUL in a text is refused: code that prints, compares or stores it may stop there.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Final, TypeVar

from msgspec import inspect

from holon.decide.providers.schemas import PATH_STEP
from holon.model.errors import BadSyntaxError, DecodeError, NotJsonError
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.values import JsonValue
from holon.wire.codec import decode, encode

SYNTAX_HINT: Final = "send one whole JSON value in UTF-8, without NaN, comments or repeated names"
SHAPE_HINT: Final = "compare it with the schema of this route in GET /openapi.json"

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
T = TypeVar("T")
_NOT_AN_INTEGER: Final = re.compile(r"Expected `int[^`]*`, got `float`")
_WHOLE_NUMBERS_COUNT_MAX: Final = 16  # more than any request contains
_EXACT_MAX: Final = 2**53  # beyond it a number with a point is not exact
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_PLAIN_NUL: Final = re.compile("\0")


def explained(error: DecodeError, data: bytes, kind: type) -> DecodeError:
    """Return the error with an explanation for the sender of `data` as a `kind`."""
    if isinstance(error, BadSyntaxError):
        return _syntax_fault(error, data)
    return type(error)(error.message, hint=_hint(error, kind), field=error.field)


def field_of_text(data: bytes, wrong: "re.Pattern[str]") -> str | None:
    """Return the path to a text that contains `wrong`, empty at the top; None without one."""
    try:
        value = json.loads(data, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return next((path for path, text in _texts(value) if wrong.search(text)), None)


def _syntax_fault(error: BadSyntaxError, data: bytes) -> BadSyntaxError:
    if not data.strip():
        return BadSyntaxError("the body is empty", hint="send a JSON object")
    field = field_of_text(data, _SURROGATE)
    if field is not None:
        return BadSyntaxError(
            "a text holds half of a surrogate pair",
            hint="escape such a character as a pair, or send it as it is, in UTF-8",
            field=field or None,
        )
    message = error.message
    if message.startswith("Input data was truncated"):
        message = "the JSON ends before it is complete"
    hint = SYNTAX_HINT if error.field is None else SHAPE_HINT
    return BadSyntaxError(message, hint=hint, field=error.field)


def _texts(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Every text and every name in a value, with its path: names before texts.

    A path is cut while it is built, so that long names in deep nesting cost no more than others.
    """
    pending: list[tuple[str, JsonValue]] = [("", value)]
    while pending:
        path, each = pending.pop()
        if isinstance(each, str):
            yield path, each
        elif isinstance(each, list):
            for number, item in enumerate(each):
                pending.append((f"{path}[{number}]"[:LABEL_CHARS_MAX], item))
        elif isinstance(each, dict):
            for name, item in each.items():
                yield path, name
                longer = f"{path}.{name[:LABEL_CHARS_MAX]}" if path else name
                pending.append((longer[:LABEL_CHARS_MAX], item))


def _hint(error: DecodeError, kind: type) -> str:
    """Return the alternatives where the error is: values, tags or the names of fields."""
    types: tuple[inspect.Type, ...] = (_info(kind),)
    for step in PATH_STEP.findall(error.field or ""):
        inside = tuple(inner for each in types for inner in _types_inside(each, step))
        if not inside:
            return _names_hint(types, step)
        types = inside
    values = [value for each in types for value in _values(each)]
    return f"use one of: {', '.join(values)}" if values else SHAPE_HINT


def _names_hint(types: tuple[inspect.Type, ...], step: str) -> str:
    """Return the known tags or field names in place of an unknown one."""
    structs = [each for each in types if isinstance(each, inspect.StructType)]
    tags = [str(each.tag) for each in structs if each.tag_field == step]
    if tags:
        return f"use one of: {', '.join(tags)}"
    names = dict.fromkeys(field.encode_name for each in structs for field in each.fields)
    return f"the fields here are: {', '.join(names)}" if names else SHAPE_HINT


def _types_inside(info: inspect.Type, step: str) -> tuple[inspect.Type, ...]:
    match info:
        case inspect.StructType(fields=fields):
            types = [field.type for field in fields if field.encode_name == step]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            types = [item]
        case _:
            types = []
    return tuple(variant for each in types for variant in _variants(each))


def _variants(info: inspect.Type) -> tuple[inspect.Type, ...]:
    match info:
        case inspect.UnionType(types=types):
            return tuple(variant for each in types for variant in _variants(each))
        case inspect.Metadata(type=inner):
            return _variants(inner)
        case _:
            return (info,)


def _values(info: inspect.Type) -> tuple[str, ...]:
    match info:
        case inspect.EnumType(cls=cls):
            return tuple(str(each.value) for each in cls)
        case inspect.LiteralType(values=values):
            return tuple(map(str, values))
        case _:
            return ()


@cache
def _info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def decode_body(data: bytes, kind: type[T]) -> T:
    """Decode a body as a value of this type, or raise a DecodeError."""
    try:
        value = decode(data, kind)  # first: it bounds nesting, and has the best errors
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
    """Decode a body again, with `1000.0` as an integer where one is expected.

    JSON has no integers, and some clients write every number with a point. Only the values that
    were refused for it are changed, one after the other: free-form JSON stays unchanged.
    """
    parsed: JsonValue = None
    for _ in range(_WHOLE_NUMBERS_COUNT_MAX):
        if _NOT_AN_INTEGER.match(error.message) is None:
            break
        try:
            parsed = decode(data, object) if parsed is None else parsed
            if not _made_whole(parsed, error.field):
                break
            return decode(encode(parsed), kind)
        except DecodeError as another:  # after the number, the body may be invalid
            error = another
        except NotJsonError as another:
            error = BadSyntaxError(another.message)
    raise explained(error, data, kind) from None


def _made_whole(value: JsonValue, path: str | None) -> bool:
    """Replace a number without a fraction at a path by an integer; False if there is none."""
    *parents, last = PATH_STEP.findall(path or "") or [""]
    for step in parents:
        value = _value_inside(value, step)
    number = _value_inside(value, last)
    if not isinstance(number, float) or not number.is_integer() or abs(number) > _EXACT_MAX:
        return False
    if isinstance(value, list):
        value[int(last[1:-1])] = int(number)
    elif isinstance(value, dict):
        value[last] = int(number)
    return True


def _value_inside(value: JsonValue, step: str) -> JsonValue:
    if isinstance(value, list) and _INDEX.fullmatch(step):
        return value[int(step[1:-1])]
    return value.get(step) if isinstance(value, dict) else None


def unrepeated(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return an object, or raise BadSyntaxError when a name is repeated; in linear time."""
    members: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in members:
            raise BadSyntaxError(
                f"{name[:80]!r} is given twice in one object", hint="give it once", field=name[:80]
            )
        members[name] = value
    return members
