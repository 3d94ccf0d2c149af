"""Arguments that are nearly right are read as they were meant; right ones are left alone."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.providers.lenient_arguments import Aliases, coerce_arguments
from holon.model.limits import ARGUMENT_NOTES_COUNT_MAX
from holon.model.values import JsonValue
from holon.tools.arguments import schema_of


class Colour(StrEnum):
    """Some values."""

    RED = "red"
    DARK_BLUE = "dark_blue"


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the arguments."""

    text: str
    count: int = 1


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every kind of field."""

    name: str = "x"
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    share: float = 0.5
    flag: bool = False
    colour: Colour = Colour.RED
    lines: tuple[Line, ...] = ()
    numbers: list[int] | None = None
    maybe: int | None = None
    line: Line | None = None


class Needy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that cannot be left out."""

    text: str
    input: str = ""


SCHEMA = schema_of(Arguments)
ALIASES: Aliases = (("title", "name"), ("content", "text"), ("tint", "colour"))


def meant(value: JsonValue, schema: JsonValue = SCHEMA) -> tuple[JsonValue, tuple[str, ...]]:
    """The arguments as understood, and the notes."""
    coerced = coerce_arguments(value, schema, aliases=ALIASES)
    return coerced.value, coerced.notes


@pytest.mark.requirement("work-item-tools:arguments-are-read-leniently")
@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        ({"count": "7"}, {"count": 7}),
        ({"count": " 7.0 "}, {"count": 7}),
        ({"count": 7.0}, {"count": 7}),
        ({"share": "0.25"}, {"share": 0.25}),
        ({"flag": "True"}, {"flag": True}),
        ({"flag": "false"}, {"flag": False}),
        ({"colour": "Dark Blue"}, {"colour": "dark_blue"}),
        ({"maybe": "null"}, {"maybe": None}),
        ({"maybe": "3"}, {"maybe": 3}),
        ({"numbers": 3}, {"numbers": [3]}),
        ({"numbers": "3"}, {"numbers": [3]}),
        ({"numbers": "[1, 2]"}, {"numbers": [1, 2]}),
        ({"numbers": ["1", 2]}, {"numbers": [1, 2]}),
        ({"lines": {"text": "a"}}, {"lines": [{"text": "a"}]}),
        ({"lines": ["a", {"content": "b", "count": "2"}]},
         {"lines": [{"text": "a"}, {"text": "b", "count": 2}]}),
        ({"line": '{"text": "a"}'}, {"line": {"text": "a"}}),
        ({"line": "a"}, {"line": {"text": "a"}}),
        ({"line": " "}, {"line": None}),
        ({"title": "a"}, {"name": "a"}),
        ({"Name": "a"}, {"name": "a"}),
        ({"name": "a", "title": "b"}, {"name": "a"}),
        ({"name": "a", "why": "b"}, {"name": "a"}),
        ({"arguments": {"name": "a"}}, {"name": "a"}),
        ({"input": {"count": "1"}, "id": "call_1"}, {"count": 1}),
        ({"parameters": '{"name": "a"}'}, {"name": "a"}),
        ('{"name": "a"}', {"name": "a"}),
        ('"{\\"name\\": \\"a\\"}"', {"name": "a"}),
        (None, {}),
        ("", {}),
    ],
)  # fmt: skip
def test_what_has_one_plain_reading_is_read_that_way_and_noted(
    given_value: JsonValue, expected: JsonValue
) -> None:
    value, notes = meant(given_value)
    assert (value, bool(notes)) == (expected, True)
    msgspec.convert(value, Arguments)
    assert meant(value) == (value, ())


@pytest.mark.parametrize(
    "value",
    [
        {"count": "seven"},
        {"count": 1.5},
        {"count": True},
        {"count": "9" * 40},
        {"share": "nan"},
        {"share": "1e999"},
        {"flag": 1},
        {"flag": "yes"},
        {"name": 7},
        {"colour": "green"},
        {"lines": 3},
        {"lines": [3]},
        {"numbers": {"a": 1}},
        [],
        7,
        "hello",
    ],
)
def test_what_has_no_plain_reading_is_left_for_the_strict_decoder(value: JsonValue) -> None:
    assert meant(value)[0] == value
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Arguments)


def test_a_field_that_is_called_like_an_envelope_is_a_field() -> None:
    schema = schema_of(Needy)
    assert meant({"text": "a", "input": "b"}, schema) == ({"text": "a", "input": "b"}, ())
    assert meant({"input": "b"}, schema) == ({"input": "b"}, ())


@pytest.mark.parametrize("wrapped", [{"name": "a"}, "a", '{"name": "a"}'])
def test_an_alias_that_is_called_like_an_envelope_may_be_either(wrapped: JsonValue) -> None:
    coerced = coerce_arguments({"input": wrapped}, SCHEMA, aliases=(("input", "name"),))
    assert coerced.value == {"name": "a"}
    assert len(coerced.notes) == 1


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_is_not_read_as_arguments_where_some_are_needed(nothing: JsonValue) -> None:
    assert meant(nothing, schema_of(Needy)) == (nothing, ())


def test_unknown_fields_stay_where_dropping_them_would_be_read_too_late() -> None:
    coerced = coerce_arguments({"until": "noon"}, SCHEMA, drops_unknown=False)
    assert (coerced.value, coerced.notes) == ({"until": "noon"}, ())


def test_notes_stay_few_and_short_whatever_came_in() -> None:
    _, notes = meant({f"{'x' * 10_000}{number}": 1 for number in range(500)})
    assert len(notes) == ARGUMENT_NOTES_COUNT_MAX
    assert "493 more" in notes[-1]
    assert all(len(note) < 200 for note in notes)


def test_bottomless_nesting_in_a_text_is_left_alone() -> None:
    deep = "[" * 100_000
    assert meant({"numbers": deep}) == ({"numbers": deep}, ())


_LINES = st.builds(Line, text=st.text(), count=st.integers(-(2**63), 2**63 - 1))
_VALID = st.builds(
    Arguments,
    name=st.text(),
    count=st.integers(0, 2**63 - 1),
    share=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
    colour=st.sampled_from(Colour),
    lines=st.lists(_LINES, max_size=3).map(tuple),
    numbers=st.none() | st.lists(st.integers(-9, 9), max_size=3),
    maybe=st.none() | st.integers(-9, 9),
    line=st.none() | _LINES,
)
_ATOMS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["7", "true", "null", "Red", "[1]", '{"text": "a"}', "", '"x"', "1.0"])
    | st.text(max_size=5)
)
_NAMES = st.sampled_from(
    ["name", "count", "Count", "title", "lines", "numbers", "line", "colour", "text", "content",
     "arguments", "input", "maybe", "flag", "share", "other"]
)  # fmt: skip
_ANYTHING = st.recursive(
    _ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_NAMES, inner, max_size=4)
        | inner.map(lambda value: msgspec.json.encode(value).decode())
    ),
    max_leaves=12,
)


@pytest.mark.requirement("work-item-tools:arguments-are-read-leniently")
@given(_VALID)
def test_arguments_that_fit_are_never_changed(arguments: Arguments) -> None:
    value = msgspec.to_builtins(arguments)
    assert meant(value) == (value, ())


@given(_ANYTHING)
def test_reading_twice_is_reading_once(value: JsonValue) -> None:
    once, _ = meant(value)
    assert meant(once) == (once, ())
