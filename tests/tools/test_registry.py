"""The catalog: what every agent may ask for, and how it is described."""

import re
from typing import Any

import pytest

from holon.model.turns.tools import ToolSpec
from holon.tools.arguments import guidance_for
from holon.tools.registry import ToolRegistry, builtin_tools, local_registry
from holon.tools.wake import Sleep

BUILTIN = local_registry()
OWN = [
    "Sleep",
    "Enqueue",
    "AgentGet",
    "CreateWorkItem",
    "PickWorkItem",
    "GetWorkItem",
    "ListWorkItems",
    "UpdateWorkItem",
    "CompleteWorkItem",
    "MemorySearch",
    "MemoryGet",
]
LOCAL = [
    "ExecCommand",
    "ExecCommandBatch",
    "TaskList",
    "TaskStatus",
    "TaskOutput",
    "TaskInput",
    "TaskStop",
    "ApplyPatch",
]
LOOKS_ONLY = {
    "MemorySearch",
    "MemoryGet",
    "Sleep",
    "AgentGet",
    "GetWorkItem",
    "ListWorkItems",
    "TaskList",
    "TaskStatus",
    "TaskOutput",
}


def _objects(schema: Any) -> list[dict[str, Any]]:
    """Every object schema inside a schema."""
    if isinstance(schema, list):
        return [found for part in schema for found in _objects(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [found for part in schema.values() for found in _objects(part)]


def test_the_catalog_has_its_tools_in_a_fixed_order() -> None:
    assert [spec.name for spec in BUILTIN.specs] == LOCAL + OWN
    assert [spec.name for spec in builtin_tools().specs] == OWN
    assert BUILTIN.specs == local_registry().specs


@pytest.mark.requirement("tools:schemas-are-well-formed")
@pytest.mark.parametrize("spec", BUILTIN.specs, ids=lambda spec: spec.name)
def test_a_schema_is_a_closed_object_without_references(spec: ToolSpec) -> None:
    schema = spec.input_schema
    assert schema["type"] == "object"
    assert "$ref" not in repr(schema)
    for found in _objects(schema):
        assert found["additionalProperties"] is False
        assert set(found.get("required", [])) <= set(found["properties"])


@pytest.mark.parametrize("spec", BUILTIN.specs, ids=lambda spec: spec.name)
def test_a_tool_is_described_in_prose_from_its_guidance_file(spec: ToolSpec) -> None:
    file_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", spec.name).lower()
    assert spec.description == guidance_for(file_name)
    assert len(spec.description) > 100


def test_only_tools_that_change_something_are_guarded_against_truncation() -> None:
    policy = BUILTIN.policy
    assert policy.known == policy.exposed == {*LOCAL, *OWN}
    assert policy.mutating == policy.known - LOOKS_ONLY


def test_a_tool_is_found_by_its_name() -> None:
    registry = ToolRegistry((Sleep(),))
    assert registry.named("Sleep").spec.name == "Sleep"
    with pytest.raises(KeyError):
        registry.named("Enqueue")


@pytest.mark.requirement("turn-complete:no-second-plan-tool")
def test_plans_have_no_tool_of_their_own() -> None:
    about_work = {name for name in LOCAL + OWN if "Work" in name or "Plan" in name}
    assert about_work == {
        "CreateWorkItem",
        "PickWorkItem",
        "GetWorkItem",
        "ListWorkItems",
        "UpdateWorkItem",
        "CompleteWorkItem",
    }


@pytest.mark.requirement("turn-complete:updates-are-bookkeeping")
def test_updates_are_asked_for_after_progress_and_plans_are_sent_to_their_file() -> None:
    said = " ".join(guidance_for("update_work_item").split())
    assert "bookkeeping after real progress" in said
    assert "edit it at `plan_artifact.path`" in said
