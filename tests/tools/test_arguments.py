"""Arguments are decoded strictly, and the model is told what is wrong with them."""

from typing import Annotated

import msgspec
import pytest

from holon.model.turns.conversation import ToolUseBlock
from holon.model.turns.tools import ToolRefused
from holon.model.values import CallId, JsonValue, MessageId, TurnId
from holon.tools.arguments import decode_arguments, schema_of
from holon.tools.queue import Enqueue
from holon.tools.tool import ToolExecution, ToolScene, receipt_of
from tests.runtime.house import House, run_house
from tests.support.builders import MAIN
from tests.support.hosts import tool_ports


class Inner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the arguments."""

    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some arguments."""

    name: str
    inner: Inner = Inner()


def test_what_fits_is_decoded() -> None:
    assert decode_arguments({"name": "x", "inner": {"count": 2}}, Arguments) == Arguments(
        name="x", inner=Inner(count=2)
    )


@pytest.mark.requirement("tools:bad-arguments-are-explained")
@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({}, "name", "name"),
        ({"name": 1}, "name", "Expected `str`"),
        ({"name": "x", "inner": {"count": 0}}, "inner.count", ">= 1"),
        ({"name": "x", "inner": {"count": True}}, "inner.count", "Expected `int`"),
        ({"name": "x", "more": 1}, "more", "more"),
        ({"name": "x", "inner": {"more": 1}}, "inner.more", "more"),
        ([], None, "object"),
        ("x", None, "object"),
        (None, None, "object"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    value: JsonValue, field: str | None, words: str
) -> None:
    execution = decode_arguments(value, Arguments)
    assert isinstance(execution, ToolExecution)
    assert isinstance(execution.outcome, ToolRefused)
    error = execution.outcome.error
    assert (error.kind, error.field) == ("invalid_tool_input", field)
    assert words in error.message


@pytest.mark.requirement("tools:schemas-are-well-formed")
def test_a_schema_stands_alone_with_its_parts_in_their_places() -> None:
    schema = schema_of(Arguments)
    assert "$ref" not in repr(schema)
    assert schema["required"] == ["name"]
    inner = schema["properties"]["inner"]
    assert inner["properties"]["count"]["minimum"] == 1
    assert inner["additionalProperties"] is False


@pytest.mark.requirement("tools:bad-arguments-are-explained")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "name is a text"),
        ({"name": "x", "inner": {"count": 0}}, "inner.count is a whole number (at least 1)"),
        ({"name": "x", "inner": 3}, "inner is an object with count?"),
        ({"name": "x", "more": 1}, "leave more out; the arguments are an object with name, inner?"),
        ([], "the arguments are an object with name, inner?"),
    ],
)
def test_a_refusal_says_which_form_is_wanted(value: JsonValue, words: str) -> None:
    execution = decode_arguments(value, Arguments)
    assert isinstance(execution, ToolExecution)
    assert isinstance(execution.outcome, ToolRefused)
    assert words in (execution.outcome.error.hint or "")


@pytest.mark.requirement("tools:receipts-are-bounded")
@pytest.mark.parametrize("value", [{"y" * 500_000: 1}, {"name": "x", "inner": {"y" * 500_000: 1}}])
def test_a_refusal_stays_small_whatever_a_field_is_called(value: JsonValue) -> None:
    execution = decode_arguments(value, Arguments)
    assert isinstance(execution, ToolExecution)
    use = ToolUseBlock(call_id=CallId("call_1"), name="Any", input=value)
    assert len(receipt_of(use, execution.outcome).content) < 2_000


def test_a_refusal_after_a_lenient_reading_tells_what_was_read() -> None:
    async def story(house: House) -> None:
        arguments: JsonValue = {"input": {"text": "x", "priority": "urgent"}}
        scene = ToolScene(
            agent_id=MAIN,
            turn_id=TurnId("turn_1"),
            message_id=MessageId("msg_1"),
            effect_id="turn_1.1.0",
            now=house.clock.now(),
        )
        ports = tool_ports(reads=house.store.reads, ids=house.ids)
        execution = await Enqueue().run(arguments, scene, ports)
        assert isinstance(execution.outcome, ToolRefused)
        assert execution.outcome.error.field == "priority"
        assert "wrapped in 'input'" in execution.outcome.error.details["notes"][0]

    run_house(story)
