"""Reading a schema: where a place leads, and what it wants in plain words."""

import pytest

from holon.decide.providers.schemas import accepts, expected_form, schema_at
from holon.model.values import JsonValue
from holon.tools.arguments import schema_of
from holon.tools.work.change import UpdateWorkItemArguments

SCHEMA = schema_of(UpdateWorkItemArguments)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("work_item_id", "a text (at least 1 characters, at most 64 characters)"),
        ("plan_status", "one of draft, needs_input, ready or null"),
        ("todo_list[3].state", "one of completed, in_progress, pending"),
        ("todo_list[0]", "an object with text, state?"),
        ("recheck_after", "a whole number (at least 1, at most 31622400000) or null"),
    ],
)
def test_a_place_says_what_it_wants(place: str, words: str) -> None:
    assert expected_form(schema_at(SCHEMA, place)) == words


@pytest.mark.parametrize(
    "place", ["nothing", "work_item_id.more", "todo_list.text", "plan_status[0]"]
)
def test_a_place_that_leads_nowhere_has_no_schema(place: str) -> None:
    assert schema_at(SCHEMA, place) is None


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (1, {"type": "integer"}, True),
        (True, {"type": "integer"}, False),
        (1, {"type": "number"}, True),
        (1.5, {"type": "integer"}, False),
        (None, {"type": ["string", "null"]}, True),
        (1, {"enum": [True]}, False),
        ("a", {"enum": ["a"]}, True),
        ("a", {"anyOf": [{"type": "null"}, {"anyOf": [{"type": "string"}]}]}, True),
        ([], {}, True),
    ],
)
def test_a_value_fits_by_its_kind(value: JsonValue, schema: JsonValue, fits: bool) -> None:
    assert accepts(value, schema) is fits
