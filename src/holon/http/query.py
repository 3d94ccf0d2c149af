"""Reads a query string into the type a route names.

Owns:  the strict reading of query parameters.
Rule 1: a number is ASCII digits and nothing else: no sign, no blank, no underscore, no exponent.
Rule 2: a name that is unknown or comes twice is refused; nothing is guessed.
"""

import re
from functools import cache
from typing import Final, TypeVar
from urllib.parse import unquote_plus

import msgspec
from msgspec import inspect

from holon.model.errors import BadInputError
from holon.wire.body_faults import explained
from holon.wire.codec import shape_error

T = TypeVar("T", bound=msgspec.Struct)

_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_WORDS: Final = {"true": True, "false": False}
_QUOTED_CHARS_MAX: Final = 40


class BadQueryError(BadInputError):
    """A query parameter is not what the route takes."""

    code = "bad_query"


def read_query(text: str, kind: type[T]) -> T:
    """Return the parameters as `kind`, or raise BadQueryError naming the offending one."""
    given: dict[str, object] = {}
    for part in text.split("&") if text else ():
        name, _, raw = part.partition("=")
        if name in given:
            raise _fault(f"{name[:_QUOTED_CHARS_MAX]!r} is given twice", name, "give it once")
        if name not in _names(kind):
            quoted = f"there is no parameter {name[:_QUOTED_CHARS_MAX]!r} here"
            raise _fault(quoted, name, _known(kind))
        given[name] = _value(name, unquote_plus(raw), kind)
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as wrong:
        found = explained(shape_error(wrong), b"", kind)
        raise BadQueryError(found.message, hint=found.hint, field=found.field) from None


def _fault(message: str, name: str, hint: str) -> BadQueryError:
    return BadQueryError(message, hint=hint, field=name[:_QUOTED_CHARS_MAX] or None)


def _known(kind: type[msgspec.Struct]) -> str:
    names = ", ".join(sorted(_names(kind)))
    return f"its parameters are: {names}" if names else "this route takes no parameters"


def _value(name: str, raw: str, kind: type[msgspec.Struct]) -> object:
    expected = _scalars(kind).get(name)
    if expected is int:
        if _DIGITS.fullmatch(raw) is None:
            quoted = f"{name} takes a whole number, not {raw[:_QUOTED_CHARS_MAX]!r}"
            raise _fault(quoted, name, "write it with the digits 0 to 9 alone")
        return int(raw)
    if expected is bool:
        if raw not in _WORDS:
            raise _fault(f"{name} is true or false", name, "use one of: true, false")
        return _WORDS[raw]
    return raw


@cache
def _names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters there are."""
    return frozenset(each.encode_name for each in msgspec.structs.fields(kind))


@cache
def _scalars(kind: type[msgspec.Struct]) -> dict[str, type]:
    """Which parameters are numbers or truth values; the rest is text of some form."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    scalars: dict[str, type] = {}
    for each in info.fields:
        variants = each.type.types if isinstance(each.type, inspect.UnionType) else (each.type,)
        for variant in variants:
            if isinstance(variant, inspect.IntType):
                scalars[each.encode_name] = int
            elif isinstance(variant, inspect.BoolType):
                scalars[each.encode_name] = bool
    return scalars
