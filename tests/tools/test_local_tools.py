"""The command and task tools as each provider is shown them."""

import pytest

from holon.decide.providers.schemas import (
    arguments_from_strict,
    emit_schema,
    emitted_problems,
    source_problems,
)
from holon.model.providers.models import SchemaMode
from holon.model.values import JsonValue
from holon.tools.arguments import decode_arguments
from holon.tools.registry import local_tools
from holon.tools.tasks.exec_command import ExecCommandArguments, ExecCommandBatchArguments
from holon.tools.tool import Tool, ToolExecution

TOOLS = {tool.spec.name: tool for tool in local_tools()}


def test_the_catalog_keeps_its_order() -> None:
    assert list(TOOLS) == [
        "ExecCommand",
        "ExecCommandBatch",
        "TaskList",
        "TaskStatus",
        "TaskOutput",
        "TaskInput",
        "TaskStop",
    ]


@pytest.mark.requirement("tool-schemas:strict-emissions-are-validated")
@pytest.mark.parametrize("mode", SchemaMode)
@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_schema_is_sound_in_both_modes(tool: Tool, mode: SchemaMode) -> None:
    assert source_problems(tool.spec.input_schema) == ()
    assert emitted_problems(emit_schema(tool.spec.input_schema, mode), mode) == ()


def test_every_tool_says_what_it_is_for_and_what_each_field_means() -> None:
    for tool in TOOLS.values():
        assert tool.spec.description
        for name, field in tool.spec.input_schema["properties"].items():
            assert field.get("description"), (tool.spec.name, name)


def test_only_what_acts_on_the_outside_is_never_run_twice() -> None:
    acting = {name for name, tool in TOOLS.items() if not tool.only_plans}
    assert acting == {"ExecCommand", "ExecCommandBatch", "TaskInput", "TaskStop"}
    assert acting == {name for name, tool in TOOLS.items() if tool.spec.mutates}


@pytest.mark.requirement("command-tools:login-shell-only-when-asked")
@pytest.mark.parametrize("answered", [{"cmd": "ls"}, {"cmd": "ls", "login": None, "tty": None}])
def test_a_plain_command_has_a_plain_shell(answered: JsonValue) -> None:
    schema = TOOLS["ExecCommand"].spec.input_schema
    asked = decode_arguments(arguments_from_strict(answered, schema), ExecCommandArguments)
    assert isinstance(asked, ExecCommandArguments)
    assert (asked.login, asked.tty, asked.foreground_ms) == (False, False, 10_000)


def test_the_items_of_a_batch_are_decoded_one_by_one() -> None:
    asked = decode_arguments({"items": [{"cmd": "ls"}, {}]}, ExecCommandBatchArguments)
    assert isinstance(asked, ToolExecution)
