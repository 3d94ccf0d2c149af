"""What is wrong with what a caller sent, said so that the caller can mend it.

Owns:  the sentence, the field and the hint for a body or a query that does not decode. Pure.
Rule 1: what may be said instead is named: the values of an enum, the fields of an object.
Rule 2: the error keeps its class, and so its code; only its words are better.
Rule 3: nothing here costs more than reading the body once again, and only after it was refused.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from msgspec import inspect

from holon.decide.schema_parts import PATH_STEP
from holon.model.errors import BadSyntaxError, DecodeError
from holon.model.json_value import JsonValue
from holon.model.limits import LABEL_CHARS_MAX

SYNTAX_HINT: Final = "send one whole JSON value in UTF-8, without NaN, comments or repeated names"
SHAPE_HINT: Final = "compare it with the schema of this route in GET /openapi.json"

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def explained(error: DecodeError, data: bytes, kind: type) -> DecodeError:
    """Return the error in words for whoever sent `data` as a `kind`."""
    if isinstance(error, BadSyntaxError):
        return _syntax_fault(error, data)
    return type(error)(error.message, hint=_hint(error, kind), field=error.field)


def field_of_text(data: bytes, wrong: "re.Pattern[str]") -> str | None:
    """Return the path to a text that has `wrong` in it, empty at the top; None without one."""
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
    """Every text and every name in a value, with the path that leads to it: names before texts.

    A path is cut while it is made, so that long names in deep nests cost no more than others.
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
    """Say what may stand where the error is: values, tags or the names of fields."""
    here: tuple[inspect.Type, ...] = (_info(kind),)
    for step in PATH_STEP.findall(error.field or ""):
        inside = tuple(found for each in here for found in _inside(each, step))
        if not inside:
            return _names_hint(here, step)
        here = inside
    values = [value for each in here for value in _values(each)]
    return f"use one of: {', '.join(values)}" if values else SHAPE_HINT


def _names_hint(here: tuple[inspect.Type, ...], step: str) -> str:
    """What there is in place of a tag nobody has, or of a name that nothing has."""
    structs = [each for each in here if isinstance(each, inspect.StructType)]
    tags = [str(each.tag) for each in structs if each.tag_field == step]
    if tags:
        return f"use one of: {', '.join(tags)}"
    names = dict.fromkeys(field.encode_name for each in structs for field in each.fields)
    return f"the fields here are: {', '.join(names)}" if names else SHAPE_HINT


def _inside(info: inspect.Type, step: str) -> tuple[inspect.Type, ...]:
    match info:
        case inspect.StructType(fields=fields):
            found = [field.type for field in fields if field.encode_name == step]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            found = [item]
        case _:
            found = []
    return tuple(variant for each in found for variant in _variants(each))


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
