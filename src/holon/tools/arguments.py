"""Tool arguments: strict structs, and the schema the model sees.

Owns:  decoding a call's input into its argument struct and deriving the JSON schema from it.
Rule 1: unknown fields, wrong types and missing fields are refused with the field's name.
Rule 2: a null for a field that may be left out means that it was left out: under a strict schema a
        model has no other way to say so.
"""

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import msgspec

from holon.decide.schema_emission import arguments_from_strict
from holon.model.json_value import JsonValue
from holon.tools.tool import ToolExecution, refuse

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def decode_arguments(value: JsonValue, into: type[Arguments]) -> Arguments | ToolExecution:
    """Return the arguments, or the refusal that tells the model what is wrong with them."""
    try:
        return msgspec.convert(arguments_from_strict(value, schema_of(into)), into)
    except msgspec.ValidationError as problem:
        text = str(problem)
        field = text.rsplit("`$.", 1)[-1].rstrip("`") if "`$." in text else None
        return refuse(
            "invalid_tool_input",
            text,
            hint="call the tool again with arguments that match its schema",
            field=field,
        )


@cache
def schema_of(arguments: type[msgspec.Struct]) -> JsonValue:
    """Return the JSON schema of an argument struct, with no references to follow."""
    (schema,), components = msgspec.json.schema_components([arguments])
    return _inlined(schema, components)


def _inlined(schema: JsonValue, components: Mapping[str, JsonValue]) -> JsonValue:
    """Put every component where it is referred to; no argument struct contains itself."""
    match schema:
        case {"$ref": str() as path, **beside}:
            target = components[path.rsplit("/", 1)[-1]]
            return {**_inlined(target, components), **_inlined(beside, components)}
        case dict():
            return {name: _inlined(part, components) for name, part in schema.items()}
        case list():
            return [_inlined(part, components) for part in schema]
        case _:
            return schema
