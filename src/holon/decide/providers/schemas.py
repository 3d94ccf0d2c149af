"""Tool schemas: emission of source schemas in the form a provider is sent.

Owns:  reading the schemas this runtime writes for its own tools; relaxed and strict emission, the
       inverse mapping for arguments, and the validation of a schema.
Rule 1: `accepts` judges the kind of a value, not its bounds: the strict decoder checks those.
Rule 2: relaxed emission closes every object and changes nothing else.
Rule 3: strict emission closes every object and requires every field; what the source left optional
        becomes nullable. A bound that strict mode has no keyword for goes into the description.
Rule 4: only positions that hold a schema are rewritten. A field that happens to be called `default`
        and an enum value that looks like a schema are left as they are.
Rule 5: the same source gives the same keys in the same order: a schema is part of the prompt.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec

from holon.model.providers.models import SchemaMode
from holon.model.values import JsonValue

PATH_STEP: Final = re.compile(r"[^.\[\]]+|\[[^\[\]]*\]")
_SHOWN_VALUES_COUNT_MAX: Final = 12

_KIND_NAMES: Final[Mapping[str, str]] = MappingProxyType(
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
_BOUND_FORMS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
)
_NAMED_SCHEMAS: Final = ("properties", "$defs", "definitions", "patternProperties")
_LISTED_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE_SCHEMAS: Final = ("items", "not", "contains", "additionalProperties")

# What strict mode accepts. Everything else is dropped or, if it bounds a value, described.
_STRICT_KEYWORDS: Final = frozenset({
    "type", "description", "properties", "required", "additionalProperties", "items", "anyOf",
    "enum", "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minItems", "maxItems",
})  # fmt: skip
_BOUNDS: Final = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minItems", "maxItems",
})  # fmt: skip
_STRICT_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_DESCRIBED_KEYWORDS: Final = (
    "default", "format", "minLength", "maxLength", "uniqueItems", *sorted(_BOUNDS),
)  # fmt: skip
_TYPE_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}
_ROOT: Final = "$"
_KNOWN_TYPES: Final = frozenset({*_TYPE_NAMES.values(), "object"})
_SAYS_TYPE: Final = ("type", "enum", "const", "anyOf", "oneOf")
_NOT_EMITTABLE: Final = (
    "$ref", "$defs", "definitions", "allOf", "not", "if", "then", "else", "prefixItems",
    "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
)  # fmt: skip


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
    """Whether a value is of the kind of an alternative, or of one nested in it."""
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
    """Describe what a schema position requires."""
    return " or ".join(_branch_form(branch) for branch in branches_of(schema)) or "a value"


def _branch_form(schema: Mapping[str, JsonValue]) -> str:
    if isinstance(values := schema.get("enum"), list):
        listed = ", ".join(map(str, values[:_SHOWN_VALUES_COUNT_MAX]))
        return f"one of {listed}"
    form_text = " or ".join(_KIND_NAMES.get(kind, kind) for kind in kinds_of(schema)) or "a value"
    if is_of_kind(schema, "array"):
        form_text = f"{form_text}, each {expected_form(schema.get('items'))}"
    if is_of_kind(schema, "object") and isinstance(schema.get("properties"), dict):
        form_text = f"{form_text} with {_fields_form(schema)}"
    bounds = [form.format(schema[name]) for name, form in _BOUND_FORMS if name in schema]
    return f"{form_text} ({', '.join(bounds)})" if bounds else form_text


def _fields_form(schema: Mapping[str, JsonValue]) -> str:
    required = schema.get("required", ())
    named = (name if name in required else f"{name}?" for name in schema["properties"])
    return ", ".join(named) or "no fields"


def emit_schema(schema: JsonValue, mode: SchemaMode, *, takes_bounds: bool = True) -> JsonValue:
    """Return the schema a provider is sent for a source schema.

    A wire whose strict mode has no bounds of numbers and lists gets them in the description.
    """
    if mode is SchemaMode.RELAXED:
        return _relaxed(schema)
    return _strict(schema, _STRICT_KEYWORDS if takes_bounds else _STRICT_KEYWORDS - _BOUNDS)


# --- Emission -------------------------------------------------------------------------------------


def _within(
    schema: Mapping[str, JsonValue], emit: Callable[[JsonValue], JsonValue]
) -> dict[str, JsonValue]:
    """Return a copy with every schema directly inside it emitted."""
    emitted: dict[str, JsonValue] = {}
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            emitted[keyword] = {name: emit(part) for name, part in value.items()}
        elif keyword in _LISTED_SCHEMAS and isinstance(value, list | tuple):
            emitted[keyword] = [emit(part) for part in value]
        elif keyword in _SINGLE_SCHEMAS:
            emitted[keyword] = emit(value)
        else:
            emitted[keyword] = value
    return emitted


def _relaxed(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict):
        return schema
    emitted = _within(schema, _relaxed)
    if _is_object(schema):
        emitted["additionalProperties"] = False
    return emitted


def _strict(schema: JsonValue, taken: frozenset[str]) -> JsonValue:
    if not isinstance(schema, dict):
        return schema
    inner = _within(_with_any_of(schema), partial(_strict, taken=taken))
    emitted = _strict_keywords(inner, taken)
    if "type" not in emitted and (inferred := _type_of_values(emitted)):
        emitted = {"type": inferred, **emitted}
    if _accepts_null(emitted):
        emitted = _nullable(emitted)
    if _is_object(schema):
        _require_every_field(emitted, schema)
    return emitted


def _with_any_of(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Strict mode knows `anyOf` alone; branches that exclude each other mean the same there."""
    if "oneOf" not in schema or "anyOf" in schema:
        return schema
    return {("anyOf" if name == "oneOf" else name): part for name, part in schema.items()}


def _strict_keywords(
    schema: Mapping[str, JsonValue], taken: frozenset[str]
) -> dict[str, JsonValue]:
    keywords = {
        keyword: value
        for keyword, value in schema.items()
        if keyword in taken or (keyword == "format" and value in _STRICT_FORMATS)
    }
    described = ", ".join(
        f"{keyword} {msgspec.json.encode(schema[keyword]).decode()}"
        for keyword in _DESCRIBED_KEYWORDS
        if schema.get(keyword) is not None and keyword not in keywords
    )
    if described:
        description = keywords.get("description")
        prefix = f"{description} " if isinstance(description, str) and description else ""
        keywords["description"] = f"{prefix}({described})"
    return keywords


def _require_every_field(emitted: dict[str, JsonValue], source: Mapping[str, JsonValue]) -> None:
    properties = emitted.get("properties")
    fields: dict[str, JsonValue] = properties if isinstance(properties, dict) else {}
    needed = source.get("required")
    required = needed if isinstance(needed, list | tuple) else ()
    emitted["properties"] = {
        name: part if name in required else _nullable(part) for name, part in fields.items()
    }
    emitted["required"] = list(fields)
    emitted["additionalProperties"] = False


def _nullable(schema: JsonValue) -> JsonValue:
    """Let a schema take null; everywhere it names types or values, null is among them."""
    if not isinstance(schema, dict):
        return schema
    widened = dict(schema)
    if "const" in widened:
        widened = {("enum" if name == "const" else name): part for name, part in widened.items()}
        widened["enum"] = [schema["const"]]
    if "type" in widened and "null" not in _types(widened):
        widened["type"] = [*_types(widened), "null"]
    if isinstance(values := widened.get("enum"), list | tuple):
        widened["enum"] = list(values) if None in values else [*values, None]
    if isinstance(branches := widened.get("anyOf"), list):
        taken = any(_accepts_null(branch) for branch in branches)
        widened["anyOf"] = branches if taken else [*branches, {"type": "null"}]
    return widened


def _accepts_null(schema: JsonValue) -> bool:
    """Whether a schema already accepts null: by its types, its values or one of its branches."""
    if not isinstance(schema, dict):
        return False
    branches = schema.get("anyOf")
    if "type" in schema:
        return "null" in _types(schema)
    if isinstance(values := schema.get("enum"), list | tuple):
        return None in values
    return isinstance(branches, list) and any(_accepts_null(branch) for branch in branches)


def _is_object(schema: Mapping[str, JsonValue]) -> bool:
    return "object" in _types(schema) or ("type" not in schema and "properties" in schema)


def _types(schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    match schema.get("type"):
        case str() as kind:
            return (kind,)
        case list() | tuple() as kinds:
            return tuple(kind for kind in kinds if isinstance(kind, str))
        case _:
            return ()


def _type_of_values(schema: Mapping[str, JsonValue]) -> JsonValue:
    """The types of the values a schema lists, which strict mode requires."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if not isinstance(values, list | tuple):
        return None
    kinds = list(dict.fromkeys(_TYPE_NAMES.get(type(value), "object") for value in values))
    return kinds[0] if len(kinds) == 1 else kinds


def arguments_from_strict(arguments: JsonValue, schema: JsonValue) -> JsonValue:
    """Return arguments that answer a strict schema as the source schema would have them.

    Strict mode leaves a model no way to leave a field out but null. Where the source does not take
    null, the field is left out here; a null the source knows stays.
    """
    if not isinstance(schema, dict):
        return arguments
    if isinstance(arguments, dict):
        return _without_absent(arguments, _branch(schema, "object"))
    if isinstance(arguments, list):
        items = _branch(schema, "array").get("items")
        return [arguments_from_strict(each, items) for each in arguments]
    return arguments


def _without_absent(
    arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    fields, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: arguments_from_strict(value, fields.get(name))
        for name, value in arguments.items()
        if not (
            value is None
            and name in fields
            and name not in required
            and not _accepts_null(fields[name])
        )
    }


def _branch(schema: Mapping[str, JsonValue], kind: str) -> Mapping[str, JsonValue]:
    """Return the part of a schema that is about values of a kind, when only one part is."""
    if kind in _types(schema):
        return schema
    branches = schema.get("anyOf", schema.get("oneOf", ()))
    fitting = [part for part in branches if isinstance(part, dict) and kind in _types(part)]
    return fitting[0] if len(fitting) == 1 else {}


# --- Validation -----------------------------------------------------------------------------------


def source_problems(schema: JsonValue) -> tuple[str, ...]:
    """Return what keeps a tool's own schema from being sent to every provider."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return (f"{_ROOT}: the root is not an object schema",)
    return tuple(
        problem for place, part in _schemas(schema, _ROOT) for problem in _source_flaws(place, part)
    )


def emitted_problems(schema: JsonValue, mode: SchemaMode) -> tuple[str, ...]:
    """Return where an emitted schema breaks the rules of its mode."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return (f"{_ROOT}: the root is not an object schema",)
    flaws = _strict_flaws if mode is SchemaMode.STRICT else _closing_flaws
    return tuple(
        problem for place, part in _schemas(schema, _ROOT) for problem in flaws(place, part)
    )


def _schemas(schema: JsonValue, place: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield every schema in a schema, itself first, with the place it stands at."""
    yield place, schema
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            for name, part in value.items():
                yield from _schemas(part, f"{place}.{name}")
        elif keyword in _LISTED_SCHEMAS and isinstance(value, list | tuple):
            for index, part in enumerate(value):
                yield from _schemas(part, f"{place}<{keyword} {index}>")
        elif keyword in ("items", "not", "contains"):
            yield from _schemas(value, f"{place}[]")


def _source_flaws(place: str, schema: JsonValue) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{place}: not a schema object"
        return
    if not any(keyword in schema for keyword in _SAYS_TYPE):
        yield f"{place}: says no type"
    yield from (
        f"{place}: unknown type {kind!r}" for kind in _types(schema) if kind not in _KNOWN_TYPES
    )
    yield from (
        f"{place}: {keyword} cannot be emitted" for keyword in _NOT_EMITTABLE if keyword in schema
    )
    if "array" in _types(schema) and "items" not in schema:
        yield f"{place}: an array that does not say of what"
    if _is_object(schema):
        yield from _source_object_flaws(place, schema)


def _source_object_flaws(place: str, schema: Mapping[str, JsonValue]) -> Iterator[str]:
    if isinstance(schema.get("additionalProperties"), dict) or "properties" not in schema:
        yield f"{place}: an open map cannot be emitted; use a list of named pairs"
    fields, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(fields, dict) or not isinstance(required, list | tuple):
        yield f"{place}: its fields are not a table, or the required ones not a list"
        return
    for name in required:
        if name not in tuple(fields):
            yield f"{place}: requires {name!r}, which is no field"
    for name, part in fields.items():
        if isinstance(part, dict) and not str(part.get("description", "")).strip():
            yield f"{place}.{name}: has no description"


def _closing_flaws(place: str, schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield f"{place}: a reference is left"
        if _is_object(schema) and schema.get("additionalProperties") is not False:
            yield f"{place}: takes additional properties"


def _strict_flaws(place: str, schema: JsonValue) -> Iterator[str]:
    yield from _closing_flaws(place, schema)
    if not isinstance(schema, dict):
        yield f"{place}: not a schema object"
        return
    for keyword in schema:
        if keyword not in _STRICT_KEYWORDS and keyword != "format":
            yield f"{place}: strict mode has no {keyword}"
    if "type" not in schema and "anyOf" not in schema:
        yield f"{place}: says no type"
    if _is_object(schema) and schema.get("required") != list(schema.get("properties", {})):
        yield f"{place}: does not require every field"
    values = schema.get("enum")
    if "null" in _types(schema) and isinstance(values, list) and None not in values:
        yield f"{place}: nullable, but null is not among its values"
