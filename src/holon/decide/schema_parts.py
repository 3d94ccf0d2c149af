"""Looking into a JSON schema: its alternatives, its kinds, and what it expects in plain words.

Owns:  reading the schemas this runtime writes for its own tools; nothing is changed here.
Rule 1: `accepts` judges the kind of a value, not its bounds: those are the strict decoder's.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from holon.model.json_value import JsonValue

PATH_STEP: Final = re.compile(r"[^.\[\]]+|\[[^\[\]]*\]")
_SHOWN_VALUES_COUNT_MAX: Final = 12

_KIND_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "string": "a text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "array": "a list",
        "object": "an object",
        "null": "null",
    }
)
_BOUND_WORDS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
)


def branches_of(schema: JsonValue) -> tuple[Mapping[str, JsonValue], ...]:
    """The alternatives a schema allows; itself when it has none."""
    if not isinstance(schema, dict):
        return ()
    branches = schema.get("anyOf", schema.get("oneOf"))
    if not isinstance(branches, list):
        return (schema,)
    return tuple(branch for branch in branches if isinstance(branch, dict))


def kinds_of(schema: JsonValue) -> tuple[str, ...]:
    """The JSON types one alternative names."""
    match schema.get("type") if isinstance(schema, dict) else None:
        case str() as kind:
            return (kind,)
        case list() as kinds:
            return tuple(kind for kind in kinds if isinstance(kind, str))
        case _:
            return ()


def is_of_kind(schema: JsonValue, kind: str) -> bool:
    """Whether an alternative is about values of this kind."""
    return kind in kinds_of(schema)


def accepts(value: JsonValue, schema: JsonValue) -> bool:
    """Whether a value is of the kind an alternative, or one of its own, is about."""
    parts = branches_of(schema)
    if len(parts) != 1 or parts[0] is not schema:
        return any(accepts(value, part) for part in parts)
    if isinstance(values := schema.get("enum"), list):
        return any(type(each) is type(value) and each == value for each in values)
    kinds = kinds_of(schema)
    return (
        not kinds or kind_of(value) in kinds or (kind_of(value) == "integer" and "number" in kinds)
    )


def kind_of(value: JsonValue) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def schema_at(schema: JsonValue, place: str) -> JsonValue:
    """The schema of a place such as `todo_list[0].state`, or nothing when it leads nowhere."""
    steps: Sequence[str] = PATH_STEP.findall(place)
    for step in steps:
        inside = [_inside(branch, step) for branch in branches_of(schema)]
        schema = next((part for part in inside if part is not None), None)
    return schema


def _inside(schema: Mapping[str, JsonValue], step: str) -> JsonValue:
    if step.startswith("["):
        return schema.get("items")
    fields = schema.get("properties")
    return fields.get(step) if isinstance(fields, dict) else None


def expected_form(schema: JsonValue) -> str:
    """What a place wants, in words."""
    return " or ".join(_branch_form(branch) for branch in branches_of(schema)) or "a value"


def _branch_form(schema: Mapping[str, JsonValue]) -> str:
    if isinstance(values := schema.get("enum"), list):
        shown = ", ".join(map(str, values[:_SHOWN_VALUES_COUNT_MAX]))
        return f"one of {shown}"
    words = " or ".join(_KIND_WORDS.get(kind, kind) for kind in kinds_of(schema)) or "a value"
    if is_of_kind(schema, "array"):
        words = f"{words}, each {expected_form(schema.get('items'))}"
    if is_of_kind(schema, "object") and isinstance(schema.get("properties"), dict):
        words = f"{words} with {_fields_form(schema)}"
    bounds = [form.format(schema[name]) for name, form in _BOUND_WORDS if name in schema]
    return f"{words} ({', '.join(bounds)})" if bounds else words


def _fields_form(schema: Mapping[str, JsonValue]) -> str:
    required = schema.get("required", ())
    named = (name if name in required else f"{name}?" for name in schema["properties"])
    return ", ".join(named) or "no fields"
