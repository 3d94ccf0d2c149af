"""Arbitrary JSON, kept honest.

Owns:  the one name for "any JSON value" and the check that it really is JSON.
Rule 1: NaN and infinities have no JSON form; a value holding one is refused, never sent as null.
Rule 2: text must be encodable; a lone surrogate is refused.
Rule 3: nesting is bounded, so that no reader of ours can be made to recurse without end.
"""

import math
from collections.abc import Collection
from typing import Any, TypeAlias

from holon.model.errors import NotJsonError
from holon.model.limits import JSON_DEPTH_MAX

JsonValue: TypeAlias = Any  # a recursive alias would be truer, but msgspec cannot decode into one


def require_json(value: JsonValue) -> None:
    """Raise NotJsonError unless `value` has an exact JSON form."""
    pending: list[tuple[JsonValue, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        children = _children_of(item)
        if children and depth >= JSON_DEPTH_MAX:
            raise NotJsonError(f"JSON nested deeper than {JSON_DEPTH_MAX} levels")
        pending += [
            (child, depth + 1)
            for child in children
            if type(child) is not str or not child.isascii()  # which most are
        ]


def _children_of(item: JsonValue) -> Collection[JsonValue]:
    """Return what is nested in a value, once the value itself is known to be JSON."""
    match item:
        case None | bool() | int():
            return ()
        case float() if math.isfinite(item):
            return ()
        case float():
            raise NotJsonError("JSON has no form for NaN or infinity")
        case str():
            require_unicode(item)
            return ()
        case list() | tuple():
            return item
        case dict():
            _require_keys(item)
            return item.values()
        case _:
            raise NotJsonError(f"{type(item).__name__} is not a JSON value")


def _require_keys(item: dict[object, JsonValue]) -> None:
    for key in item:
        if not isinstance(key, str):
            raise NotJsonError("JSON object keys are text")
        require_unicode(key)


def require_unicode(text: str) -> None:
    """Raise NotJsonError when `text` holds a lone surrogate."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJsonError("text holds a lone surrogate") from None
