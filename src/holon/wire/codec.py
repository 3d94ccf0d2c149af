"""JSON codec: records to bytes and back, strictly.

Owns:  the one encoding of records, with a named error for each way bytes can be wrong; the body of
       every refused request, and the event that ends a stream with one.
Rule 1: decoding returns exactly what was encoded. A number without a JSON form, a lone surrogate or
        excessive nesting is refused in both directions, never adjusted.
Rule 2: an error ends in the JSON path of the offending value. It quotes at most one line of the
        input, so hostile input cannot flood a log.
Rule 3: callers distinguish by class: BadTagError (unknown variant), BadEnumError (unknown value),
        BadSyntaxError (not JSON, or JSON beyond what a reader could hold), DecodeError (any other
        shape).
Rule 4: `code` is stable and for programs; `error` is a sentence; `hint` says what to do next.
"""

import re
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, TypeVar, overload

import msgspec
from msgspec import inspect

from holon.model.errors import (
    BadEnumError,
    BadSyntaxError,
    BadTagError,
    DecodeError,
    NotJsonError,
)
from holon.model.record import Record
from holon.model.text_size import cut
from holon.model.values import JsonValue, require_json

T = TypeVar("T")

QUOTED_CHARS_MAX: Final = 200
_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final[dict[object, "msgspec.json.Decoder[Any]"]] = {}
_NAMED: Final = re.compile(r"(?:required|unknown) field `(?P<name>[^`]*)`")
_LOCATED: Final = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
STREAM_CLOSED: Final = "stream_closed"


def encode(value: object) -> bytes:
    """Return the JSON form of a record or of plain JSON, or raise NotJsonError."""
    _require_exact(value)
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        raise NotJsonError("text holds a lone surrogate") from None
    except RecursionError:
        raise NotJsonError("JSON nested too deeply to write") from None
    except TypeError as error:
        raise NotJsonError(str(error)) from None


@overload
def decode(data: bytes | str, type_: type[T]) -> T: ...
@overload
def decode(data: bytes | str, type_: UnionType) -> Any: ...
def decode(data: bytes | str, type_: type[T] | UnionType) -> T | Any:
    """Decode `data` as a value of this type, or raise a DecodeError.

    A union of records has no single class, so the caller states its static type.
    """
    try:
        return _decoder(type_).decode(data)
    except msgspec.ValidationError as error:
        raise shape_error(error) from None
    except msgspec.DecodeError as error:
        raise BadSyntaxError(f"{error} at $") from None
    except UnicodeError as error:  # bytes that are not UTF-8, or a str with a lone surrogate
        raise BadSyntaxError(f"text is not Unicode: {_quoted(str(error))} at $") from None
    except RecursionError:
        raise BadSyntaxError("JSON nested too deeply to read at $") from None


def _decoder(type_: object) -> "msgspec.json.Decoder[Any]":
    decoder = _DECODERS.get(type_)
    if decoder is None:
        decoder = _DECODERS[type_] = msgspec.json.Decoder(type_, strict=True)
    return decoder


def shape_error(error: msgspec.ValidationError) -> DecodeError:
    """Return the named error for a msgspec error, whose kinds differ only in their text."""
    located = _LOCATED.fullmatch(str(error))
    what, path = (located["what"], located["path"]) if located else (str(error), None)
    message = f"{_quoted(what)} at {_quoted(path or '$')}"
    field = _field_of(what, path or "$")
    if isinstance(error.__cause__, NotJsonError) or what.startswith("Number out of range"):
        return BadSyntaxError(message, field=field)
    if what.startswith("Invalid enum value"):
        return BadEnumError(message, field=field)
    if what.startswith("Invalid value"):
        return BadTagError(message, field=field)
    return DecodeError(message, field=field)


def _field_of(what: str, path: str) -> str | None:
    """Return the field at fault: the path, with the name that is missing or unknown."""
    named = _NAMED.search(what)
    field = path.removeprefix("$") + (f".{named['name']}" if named else "")
    return _quoted(field.removeprefix(".")) or None


def _quoted(text: str) -> str:
    return cut(text, chars_max=QUOTED_CHARS_MAX)


class _Inexact(NamedTuple):
    """The fields of a record that may hold a value without an exact JSON form."""

    values: tuple[str, ...]  # floats and arbitrary JSON
    records: tuple[str, ...]  # other records that have such fields


def _require_exact(value: object) -> None:
    """Raise NotJsonError for values the encoder would change silently: NaN, bytes."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, msgspec.Struct):
            fields = _inexact_fields(type(item))
            for name in fields.values:
                require_json(getattr(item, name))
            pending.extend(getattr(item, name) for name in fields.records)
        elif isinstance(item, list | tuple) and any(isinstance(x, msgspec.Struct) for x in item):
            pending.extend(item)
        else:
            require_json(item)


@cache
def _inexact_fields(record: type[msgspec.Struct]) -> _Inexact:
    values: list[str] = []
    records: list[str] = []
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        if _holds_inexact(field.type):
            into = records if _holds_record(field.type) else values
            into.append(field.name)
    return _Inexact(tuple(values), tuple(records))


def _holds_inexact(info: inspect.Type) -> bool:
    if isinstance(info, inspect.StructType):
        return any(_inexact_fields(info.cls))
    return isinstance(info, inspect.AnyType | inspect.FloatType) or any(
        _holds_inexact(part) for part in _parts_of(info)
    )


def _holds_record(info: inspect.Type) -> bool:
    return isinstance(info, inspect.StructType) or any(_holds_record(p) for p in _parts_of(info))


def _parts_of(info: inspect.Type) -> tuple[inspect.Type, ...]:
    match info:
        case inspect.UnionType(types=types):
            return tuple(types)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return (item,)
        case inspect.TupleType(item_types=items):
            return tuple(items)
        case inspect.DictType(value_type=item):
            return (item,)
        case inspect.Metadata(type=inner):
            return (inner,)
        case _:
            return ()


def json_of(value: object) -> JsonValue:
    """Return a record as plain dicts and lists, as on the wire."""
    return msgspec.json.decode(encode(value))


class ErrorBody(Record, frozen=True, kw_only=True):
    """Why a request was refused. Nothing was changed."""

    ok: Literal[False]
    error: str
    code: str
    hint: str | None = None
    field: str | None = None
    agent_id: str | None = None
    resume_path: str | None = None
