"""The errors of a tool, as the reference reads them off the source."""

import re
from typing import Final

import pytest

from holon.tools.registry import local_registry
from scripts.reference.tool_errors import ErrorSeen, errors_from
from scripts.reference.tool_page import errors_of, shared_errors

REGISTRY: Final = local_registry()
NAMES: Final = [spec.name for spec in REGISTRY.specs]
OF_ITEMS: Final = {"unknown_work_item", "work_item_completed"}
OF_COMMANDS: Final = {"command_spawn_failed", "execution_root_violation"}
OF_MEMORY: Final = {
    "memory_index_unavailable",
    "memory_index_lost",
    "unsupported_runtime_capability",
}
EXPECTED: Final = {
    "ExecCommand": OF_COMMANDS | {"storage_full", "quota_reached"},
    "ExecCommandBatch": OF_COMMANDS | {"unsupported_batch_command_field"},
    "TaskStatus": {"task_not_found"},
    "TaskOutput": {"task_not_found"},
    "TaskInput": {"task_not_found"},
    "TaskStop": {"task_not_found"},
    "Enqueue": {"followup_chain_used_up"},
    "AgentGet": {"agent_not_found"},
    "CreateWorkItem": {"plan_not_written", "bad_objective", "quota_reached"},
    "PickWorkItem": OF_ITEMS,
    "GetWorkItem": {"unknown_work_item"},
    "UpdateWorkItem": OF_ITEMS | {"bad_objective"},
    "CompleteWorkItem": OF_ITEMS,
    "MemorySearch": OF_MEMORY,
    "MemoryGet": OF_MEMORY | {"memory_source_not_found"},
}
OF_PATCHES: Final = {
    "ambiguous_context",
    "context_not_found",
    "existing_file",
    "file_refused",
    "instruction_source_guarded",
    "invalid_patch_syntax",
    "missing_file",
    "patch_too_large",
    "path_escape",
    "unsupported_git_patch_feature",
}


def errors_named(name: str) -> tuple[ErrorSeen, ...]:
    return errors_of(REGISTRY.named(name)).errors


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ApplyPatch"])
def test_the_errors_of_a_tool_are_found_and_no_others(name: str) -> None:
    kinds = {error.kind for error in errors_named(name)}
    assert kinds == EXPECTED.get(name, set()) | {"invalid_tool_input"}


def test_a_patch_is_refused_for_many_reasons() -> None:
    assert {error.kind for error in errors_named("ApplyPatch")} >= OF_PATCHES


def test_what_any_call_can_be_answered_with_is_found_too() -> None:
    assert {error.kind for error in shared_errors()} >= {
        "unknown_tool",
        "tool_not_exposed_for_round",
        "truncated_mutation_tool_call",
        "too_many_tool_calls",
        "tool_crashed",
        "directory_refused",
        "interrupted",
        "invalid_tool_input",
    }


@pytest.mark.requirement("tools:every-error-has-a-kind-and-a-hint")
@pytest.mark.parametrize("name", NAMES)
def test_every_error_has_a_stable_kind_and_says_what_to_do(name: str) -> None:
    for error in (*errors_named(name), *shared_errors()):
        assert re.fullmatch("[a-z]+(_[a-z]+)*", error.kind)
        assert error.hint, error


def test_only_what_hands_a_message_to_admission_is_refused_by_it() -> None:
    assert [name for name in NAMES if errors_of(REGISTRY.named(name)).is_admitting] == ["Enqueue"]


def test_a_text_is_read_as_far_as_it_is_known() -> None:
    seen = errors_from("holon.tools.tasks.foreground", "checked_command").errors
    told = {error.message: error.hint for error in seen}
    assert told["`cmd` is empty"] == "name a command"
    assert told["there is no directory …"] == "…"
    assert any(re.fullmatch(r"`cmd` is longer than \d+ bytes", message) for message in told)
