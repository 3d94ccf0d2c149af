"""The grammar allows words and valid calls, and no other thing that begins with a brace."""

import pytest

from holon.adapters.providers.local.prompt import GENERAL, SMALL
from holon.adapters.providers.local.provider import grammar_of
from holon.model.turns.tools import ToolSpec
from holon.model.values import JsonValue
from tests.adapters.providers.local.local_requests import EXEC, SLEEP


def rule_of(schema: JsonValue, *, required: bool = True) -> str:
    """Return the rule for one argument `a` of this schema, under the general profile."""
    body = {"type": "object", "properties": {"a": schema}, "required": ["a"] if required else []}
    tool = ToolSpec(name="T", description="", input_schema=body)
    opening = r'"{\"tool\": \"T\", \"arguments\": " "{" '
    rule = next(r for r in grammar_of([tool], GENERAL).splitlines() if r.startswith("call0 ::= "))
    return rule.removeprefix(f"call0 ::= {opening}").removesuffix('"}" "}"').strip()


def test_every_offered_tool_is_a_choice_beside_words() -> None:
    rules = grammar_of([EXEC, SLEEP], SMALL).splitlines()
    assert rules[0] == "root ::= words | call0 | call1"
    assert r"\"tool\": \"ExecCommand\"" in rules[2]
    assert r"\"tool\": \"Sleep\"" in rules[3]


def test_without_tools_there_are_only_words() -> None:
    assert grammar_of([], SMALL) == r"root ::= [^{\x00-\x20] [^\x00]*"


def test_a_small_model_is_spared_what_is_optional() -> None:
    grammar = grammar_of([EXEC], SMALL)
    assert "cmd" in grammar
    assert "workdir" not in grammar
    assert "workdir" in grammar_of([EXEC], GENERAL)


A = r'"\"a\": " '


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({"type": "string"}, r'("\"" char* "\"")'),
        ({"type": "string", "minLength": 1}, r'("\"" char char* "\"")'),
        ({"type": "string", "maxLength": 9}, r'("\"" char{0,9} "\"")'),
        ({"type": "string", "maxLength": 10**6}, r'("\"" char* "\"")'),
        ({"type": "integer"}, "(integer)"),
        ({"type": "boolean"}, '(("true" | "false"))'),
        ({"type": ["number", "null"]}, '(number | "null")'),
        ({"enum": ["x", 'y"', 3]}, r'("\"x\"" | "\"y\\\"\"" | "3")'),
        ({"const": None}, '"null"'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, '((integer) | ("null"))'),
        (
            {"type": "array", "items": {"type": "integer"}},
            '("[" ((integer) (", " (integer))*)? "]")',
        ),
        (
            {"type": "array", "items": {"const": 1}, "minItems": 1},
            '("[" "1" (", " "1")* "]")',
        ),
        ({"type": "object"}, "(anyobject)"),
        ({}, "(any)"),
        (True, "any"),
        ({"$ref": "#/properties/a"}, "any"),
        ({"$ref": "#/nowhere"}, "any"),
    ],
)
def test_a_schema_becomes_a_rule(schema: JsonValue, rule: str) -> None:
    assert rule_of(schema) == A + rule


def test_optional_members_may_each_be_left_out() -> None:
    schema = {"type": "object", "properties": {"x": {"const": 1}, "y": {"const": 2}}}
    inside = r'("\"x\": " "1" (", " "\"y\": " "2")? | "\"y\": " "2")?'
    assert rule_of(schema) == A + f'("{{" {inside} "}}")'
    assert rule_of({"const": 1}, required=False) == f'({A}"1")?'


def test_a_schema_that_contains_itself_ends() -> None:
    node: JsonValue = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    body = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/node"}},
        "required": ["a"],
        "$defs": {"node": node},
    }
    tool = ToolSpec(name="T", description="", input_schema=body)
    assert len(grammar_of([tool], GENERAL)) < 20_000


@pytest.mark.parametrize("schema", [None, True, {}, {"type": "object"}])
def test_arguments_of_unknown_shape_are_any_object(schema: JsonValue) -> None:
    tool = ToolSpec(name="T", description="", input_schema=schema)
    assert 'call0 ::= "{\\"tool\\": \\"T\\", \\"arguments\\": " anyobject "}"' in grammar_of(
        [tool], GENERAL
    )
