"""Every built-in tool, as each provider is shown it."""

import pytest

from holon.decide.providers.schemas import (
    arguments_from_strict,
    emit_schema,
    emitted_problems,
    source_problems,
)
from holon.model.providers.models import SchemaMode
from holon.model.turns.tools import ToolSpec
from holon.tools.arguments import decode_arguments
from holon.tools.queue import EnqueueArguments
from holon.tools.registry import local_registry

SPECS = local_registry().specs


@pytest.mark.requirement("tool-schemas:sources-are-validated")
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_source_schema_of_a_built_in_tool_is_sound(spec: ToolSpec) -> None:
    assert source_problems(spec.input_schema) == ()


@pytest.mark.requirement("tool-schemas:strict-emissions-are-validated")
@pytest.mark.parametrize("mode", SchemaMode)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_built_in_tool_is_emitted_soundly_in_both_modes(spec: ToolSpec, mode: SchemaMode) -> None:
    assert emitted_problems(emit_schema(spec.input_schema, mode), mode) == ()


@pytest.mark.requirement("tool-schemas:sources-are-honest")
def test_the_source_schema_leaves_optional_what_the_arguments_leave_optional() -> None:
    sleep = next(spec for spec in SPECS if spec.name == "Sleep").input_schema
    assert sleep["required"] == []
    strict = emit_schema(sleep, SchemaMode.STRICT)
    assert strict["required"] == ["reason", "duration_ms"]
    assert {"type": "null"} in strict["properties"]["duration_ms"]["anyOf"]
    assert sleep["required"] == []


def test_what_a_model_answers_to_a_strict_schema_decodes_as_the_arguments_it_means() -> None:
    enqueue = next(spec for spec in SPECS if spec.name == "Enqueue").input_schema
    answered = arguments_from_strict({"text": "later", "priority": None}, enqueue)
    assert decode_arguments(answered, EnqueueArguments) == EnqueueArguments(text="later")
