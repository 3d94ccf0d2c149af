"""Source schemas in, provider schemas out: closed in both modes, complete in the strict one."""

import copy
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.providers.schemas import (
    arguments_from_strict,
    emit_schema,
    emitted_problems,
    source_problems,
)
from holon.model.providers.models import SchemaMode

NULL: Final = {"type": "null"}
TEXT: Final = {"type": "string", "description": "words"}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def _strict_field(field: Any, *, required: bool = False) -> Any:
    source = _object({"field": field}, ["field"] if required else [])
    return emit_schema(source, SchemaMode.STRICT)["properties"]["field"]


@pytest.mark.requirement("tool-schemas:relaxed-closes-objects")
def test_relaxed_emission_closes_every_object_and_changes_nothing_else() -> None:
    inner = _object({"a": {"type": "string", "minLength": 1, "default": "x"}})
    source = _object(
        {
            "one": inner,
            "many": {"type": "array", "items": inner},
            "either": {"anyOf": [inner, NULL]},
        }
    )
    closed = {**inner, "additionalProperties": False}
    assert emit_schema(source, SchemaMode.RELAXED) == {
        **_object(
            {
                "one": closed,
                "many": {"type": "array", "items": closed},
                "either": {"anyOf": [closed, NULL]},
            }
        ),
        "additionalProperties": False,
    }


@pytest.mark.requirement("tool-schemas:strict-rules")
def test_strict_emission_closes_objects_and_requires_every_field_at_every_depth() -> None:
    inner = _object({"x": TEXT, "y": TEXT}, ["x"])
    source = _object(
        {
            "one": inner,
            "many": {"type": "array", "items": inner},
            "either": {"anyOf": [inner, {"type": "integer"}]},
        },
        ["one", "many", "either"],
    )
    strict_inner = {
        **_object({"x": TEXT, "y": {**TEXT, "type": ["string", "null"]}}, ["x", "y"]),
        "additionalProperties": False,
    }
    assert emit_schema(source, SchemaMode.STRICT) == {
        **_object(
            {
                "one": strict_inner,
                "many": {"type": "array", "items": strict_inner},
                "either": {"anyOf": [strict_inner, {"type": "integer"}]},
            },
            ["one", "many", "either"],
        ),
        "additionalProperties": False,
    }


NULLABLE = [
    ("a plain type", {"type": "integer"}, {"type": ["integer", "null"]}),
    ("a list of types", {"type": ["integer", "string"]}, {"type": ["integer", "string", "null"]}),
    ("null already", {"type": ["integer", "null"]}, {"type": ["integer", "null"]}),
    ("nothing but null", NULL, NULL),
    ("an enum", {"enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
    (
        "an enum with null but a type without it",
        {"type": "string", "enum": ["a", None]},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    (
        "an enum of several types",
        {"enum": ["a", 1, True]},
        {"type": ["string", "integer", "boolean", "null"], "enum": ["a", 1, True, None]},
    ),
    ("a constant", {"const": "a"}, {"type": ["string", "null"], "enum": ["a", None]}),
    ("branches", {"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, NULL]}),
    (
        "branches with null among them",
        {"anyOf": [{"type": "string"}, NULL]},
        {"anyOf": [{"type": "string"}, NULL]},
    ),
    (
        "branches with a nullable enum",
        {"anyOf": [{"enum": ["a", None]}]},
        {"anyOf": [{"type": ["string", "null"], "enum": ["a", None]}]},
    ),
    ("oneOf", {"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, NULL]}),
    (
        "an object",
        {"type": "object", "properties": {}},
        {
            "type": ["object", "null"],
            "properties": {},
            "required": [],
            "additionalProperties": False,
        },
    ),
    ("an array", {"type": "array", "items": NULL}, {"type": ["array", "null"], "items": NULL}),
]


@pytest.mark.requirement("tool-schemas:strict-optional-becomes-nullable")
@pytest.mark.parametrize(
    ("source", "emitted"), [row[1:] for row in NULLABLE], ids=[row[0] for row in NULLABLE]
)
def test_an_optional_field_becomes_nullable(source: Any, emitted: Any) -> None:
    assert _strict_field(source) == emitted


@pytest.mark.requirement("tool-schemas:strict-nullable-enums-hold-null")
def test_a_required_enum_that_is_nullable_by_type_lists_null() -> None:
    field = {"type": ["string", "null"], "enum": ["a"]}
    assert _strict_field(field, required=True) == {**field, "enum": ["a", None]}


def test_a_required_field_keeps_its_type() -> None:
    assert _strict_field(TEXT, required=True) == TEXT
    assert _strict_field({"enum": ["a"]}, required=True) == {"type": "string", "enum": ["a"]}


def test_what_strict_mode_has_no_keyword_for_is_told_in_the_description() -> None:
    field = {"type": "string", "minLength": 1, "maxLength": 9, "format": "uri", "default": "x"}
    told = '(default "x", format "uri", minLength 1, maxLength 9)'
    assert _strict_field(field, required=True) == {"type": "string", "description": told}
    described = _strict_field({**field, "description": "An address."}, required=True)
    assert described["description"] == f"An address. {told}"


def test_bounds_and_formats_that_strict_mode_takes_stay() -> None:
    fields = [
        {"type": "integer", "minimum": 0, "maximum": 9},
        {"type": "string", "format": "date-time", "pattern": "^2"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    ]
    assert [_strict_field(field, required=True) for field in fields] == fields


@pytest.mark.parametrize("mode", SchemaMode)
def test_fields_and_values_that_look_like_schema_words_are_left_alone(mode: SchemaMode) -> None:
    names = ["default", "required", "type", "properties", "title", "$ref", "additionalProperties"]
    source = _object(dict.fromkeys(names, TEXT), names)
    emitted = emit_schema(source, mode)
    assert list(emitted["properties"]) == names
    assert all(emitted["properties"][name] == TEXT for name in names)
    listed = {"type": "object", "enum": [{"type": "object", "properties": {}}], "properties": {}}
    values = emit_schema(_object({"v": listed}, ["v"]), mode)["properties"]["v"]["enum"]
    assert values == [{"type": "object", "properties": {}}]


@pytest.mark.parametrize("mode", SchemaMode)
def test_an_object_without_a_stated_type_is_closed_too(mode: SchemaMode) -> None:
    emitted = emit_schema(_object({"v": {"properties": {"a": TEXT}}}, ["v"]), mode)
    assert emitted["properties"]["v"]["additionalProperties"] is False


FLAWED: Final[list[tuple[str, Any, str]]] = [
    ("no schema at all", None, "the root is not an object schema"),
    ("a list", [], "the root is not an object schema"),
    ("a text root", {"type": "string"}, "the root is not an object schema"),
    ("a nullable root", {"type": ["object", "null"]}, "the root is not an object schema"),
    ("an open map", {"type": "object"}, "an open map"),
    ("a map", _object({"m": {"type": "object", "additionalProperties": TEXT}}), "open map"),
    ("a field without a type", _object({"a": {"description": "?"}}), "$.a: says no type"),
    ("a field without words", _object({"a": {"type": "string"}}), "$.a: has no description"),
    ("an unknown type", _object({"a": {**TEXT, "type": "text"}}), "unknown type 'text'"),
    ("a reference", _object({"a": {**TEXT, "$ref": "#/$defs/A"}}), "$ref cannot be emitted"),
    ("definitions", {**_object({}), "$defs": {"A": TEXT}}, "$defs cannot be emitted"),
    ("allOf", _object({"a": {**TEXT, "allOf": [TEXT]}}), "allOf cannot be emitted"),
    ("a tuple", _object({"a": {**TEXT, "prefixItems": [TEXT]}}), "prefixItems cannot be emitted"),
    ("an array of anything", _object({"a": {**TEXT, "type": "array"}}), "does not say of what"),
    ("a boolean schema", _object({"a": True}), "$.a: not a schema object"),
    ("a required stranger", _object({}, ["a"]), "requires 'a', which is no field"),
    ("a required thing", {**_object({}), "required": [["a"]]}, "which is no field"),
    ("odd fields", {"type": "object", "properties": []}, "not a table"),
    ("odd requirements", {**_object({}), "required": "a"}, "not a list"),
    ("deep inside", _object({"a": {**TEXT, "items": _object({"b": {}})}}), "$.a[].b: says no type"),
]  # fmt: skip


@pytest.mark.requirement("tool-schemas:sources-are-validated")
@pytest.mark.parametrize(
    ("source", "flaw"), [row[1:] for row in FLAWED], ids=[row[0] for row in FLAWED]
)
def test_a_flawed_source_is_named(source: Any, flaw: str) -> None:
    assert any(flaw in problem for problem in source_problems(source))


CLOSED: Final = {**_object({"a": TEXT}, ["a"]), "additionalProperties": False}
BROKEN_EMISSIONS = [
    ("an open object", SchemaMode.RELAXED, _object({}), "takes additional properties"),
    ("a reference", SchemaMode.RELAXED, {**CLOSED, "$ref": "#"}, "a reference is left"),
    ("an optional field", SchemaMode.STRICT, {**CLOSED, "required": []}, "does not require every"),
    ("a stray keyword", SchemaMode.STRICT, {**CLOSED, "title": "T"}, "strict mode has no title"),
    (
        "an enum without null",
        SchemaMode.STRICT,
        {**CLOSED, "properties": {"a": {"type": ["string", "null"], "enum": ["x"]}}},
        "null is not among its values",
    ),
    ("no type", SchemaMode.STRICT, {**CLOSED, "properties": {"a": {}}}, "$.a: says no type"),
    ("no schema", SchemaMode.STRICT, {**CLOSED, "properties": {"a": True}}, "not a schema object"),
    ("no object", SchemaMode.STRICT, [], "the root is not an object schema"),
]


@pytest.mark.requirement("tool-schemas:strict-emissions-are-validated")
@pytest.mark.parametrize(
    ("mode", "schema", "flaw"),
    [row[1:] for row in BROKEN_EMISSIONS],
    ids=[row[0] for row in BROKEN_EMISSIONS],
)
def test_a_broken_emission_is_named(mode: SchemaMode, schema: Any, flaw: str) -> None:
    assert not emitted_problems(CLOSED, mode)
    assert any(flaw in problem for problem in emitted_problems(schema, mode))


LEAVES = st.sampled_from(
    [
        {"type": "string", "minLength": 1},
        {"type": ["integer", "null"], "minimum": 0},
        {"enum": ["a", "b"], "default": "a"},
        {"enum": [None, 1]},
        {"const": True},
        {"type": "number", "title": "N"},
    ]
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(st.sampled_from(["a", "b", "default", "enum"]), inner, max_size=3)
    objects = fields.flatmap(
        lambda named: st.sets(st.sampled_from(sorted(named)) if named else st.nothing()).map(
            lambda needed: _object(named, sorted(needed))
        )
    )
    return st.one_of(
        objects,
        inner.map(lambda item: {"type": "array", "items": item}),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
    )


SCHEMAS = st.dictionaries(
    st.sampled_from(["x", "y", "type"]), st.recursive(LEAVES, _nested, max_leaves=12), max_size=3
).map(lambda fields: _object(fields))


@given(SCHEMAS, st.sampled_from(SchemaMode))
def test_any_sound_schema_is_emitted_soundly_and_left_untouched(
    source: dict[str, Any], mode: SchemaMode
) -> None:
    before = copy.deepcopy(source)
    emitted = emit_schema(source, mode)
    assert source == before
    assert emitted_problems(emitted, mode) == ()
    assert msgspec.json.encode(emitted) == msgspec.json.encode(emit_schema(source, mode))
    assert emit_schema(emitted, mode) == emitted


INNER: Final = _object({"must": TEXT, "may": TEXT, "null": {"type": ["string", "null"]}}, ["must"])
WAYS_BACK = [
    ("an absent field is left out", INNER, {"must": "x", "may": None}, {"must": "x"}),
    ("a null the source takes stays", INNER, {"null": None}, {"null": None}),
    ("a required null stays, to be refused", INNER, {"must": None}, {"must": None}),
    ("an unknown field stays, to be refused", INNER, {"who": None}, {"who": None}),
    ("nested", _object({"in": INNER}), {"in": {"may": None}}, {"in": {}}),
    ("nested and absent", _object({"in": INNER}), {"in": None}, {}),
    (
        "in an array",
        _object({"many": {"type": "array", "items": INNER}}),
        {"many": [{"may": None}, {"may": "x"}, None]},
        {"many": [{}, {"may": "x"}, None]},
    ),
    ("in a branch", _object({"in": {"anyOf": [INNER, NULL]}}), {"in": {"may": None}}, {"in": {}}),
    (
        "in one of several branches nothing is guessed",
        _object({"in": {"anyOf": [INNER, INNER]}}),
        {"in": {"may": None}},
        {"in": {"may": None}},
    ),
    ("no object", INNER, '{"must":', '{"must":'),
    ("no schema", None, {"a": None}, {"a": None}),
]


@pytest.mark.requirement("tool-schemas:strict-optional-becomes-nullable")
@pytest.mark.parametrize(
    ("source", "answered", "meant"),
    [row[1:] for row in WAYS_BACK],
    ids=[row[0] for row in WAYS_BACK],
)
def test_null_for_an_optional_field_means_that_it_is_absent(
    source: Any, answered: Any, meant: Any
) -> None:
    assert arguments_from_strict(answered, source) == meant
