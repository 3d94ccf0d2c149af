"""The checks providers make of the tools they are offered.

Owns:  names, schemas, and what `strict` demands of them.
"""

import re
from collections.abc import Iterator
from typing import Final

from holon.model.values import JsonValue
from tests.support.wire_server.wire_request import JsonObject, WireRefusal, object_at

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


def require_name(name: JsonValue, where: str, seen: set[str]) -> str:
    """Return a tool's name, or refuse one that is malformed or taken."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise WireRefusal(
            f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
            code="invalid_value",
            param=where,
        )
    if name in seen:
        raise WireRefusal(f"Tool names must be unique: '{name}' is given twice.", param=where)
    seen.add(name)
    return name


def require_schema(schema: JsonValue, where: str, *, tool: str, strict: bool) -> None:
    """Refuse a schema that is no object's, or one that breaks what `strict` promises."""
    found = object_at(schema, where)
    if found.get("type") != "object":
        raise _bad_schema(tool, where, "schema must be a JSON Schema of 'type: \"object\"'")
    if strict and (problem := next(_strict_problems(found, ()), None)) is not None:
        raise _bad_schema(tool, where, problem)


def _bad_schema(tool: str, where: str, problem: str) -> WireRefusal:
    return WireRefusal(
        f"Invalid schema for function '{tool}': {problem}.",
        code="invalid_function_parameters",
        param=where,
    )


def _strict_problems(schema: JsonValue, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _strict_problems(item, path)
        return
    if not isinstance(schema, dict):
        return
    if "properties" in schema or schema.get("type") == "object":
        yield from _object_problems(schema, path)
    for name, property_ in schema.get("properties", {}).items():
        yield from _strict_problems(property_, (*path, "properties", name))
    for key in ("items", "anyOf", "oneOf", "allOf"):
        yield from _strict_problems(schema.get(key), (*path, key))
    for name, definition in schema.get("$defs", {}).items():
        yield from _strict_problems(definition, (*path, "$defs", name))


def _object_problems(schema: JsonObject, path: tuple[str, ...]) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"In context={path}, 'additionalProperties' is required to be supplied and false"
    missing = sorted(set(schema.get("properties", {})) - set(schema.get("required", ())))
    if missing:
        yield (
            f"In context={path}, 'required' is required to be supplied and to be an array "
            f"including every key in properties. Missing '{missing[0]}'"
        )
