"""The values enums have on the wire, word for word as the contract lists them."""

from enum import StrEnum
from typing import get_args

import msgspec
import pytest

from holon.model.agents import (
    AgentKind,
    AgentStatus,
    IdentityStatus,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.events.briefs import AttachmentKind, BriefKind, FailureCategory
from holon.model.memory.records import EpisodeBoundary, MemoryDeltaReason
from holon.model.providers.prompt_frame import Stability
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageBody,
    MessageKind,
    Origin,
    Priority,
    TrustLevel,
)
from holon.model.tasks import TaskKind, TaskRecovery, TaskStatus, WorkspaceMode
from holon.model.turns.turn import (
    ClosureOutcome,
    ReactivationMode,
    RuntimePosture,
    TerminalKind,
    TriggerKind,
    WaitingReason,
)
from holon.model.wake import (
    TimerStatus,
    TriggerDeliveryMode,
    TriggerStatus,
    WaitKind,
    WaitState,
    WakeDisposition,
)
from holon.model.work import PlanStatus, Readiness, WorkItemState
from holon.model.workspaces import AccessMode, ProjectionKind

CONTRACT: list[tuple[type[StrEnum], str]] = [
    (
        MessageKind,
        "operator_prompt webhook_event callback_event channel_event timer_tick system_tick"
        " internal_followup task_status task_result control brief_ack brief_result",
    ),
    (Priority, "interject next normal background"),
    (TrustLevel, "trusted_operator trusted_system trusted_integration untrusted_external"),
    (
        AuthorityClass,
        "operator_instruction runtime_instruction integration_signal external_evidence",
    ),
    (
        DeliverySurface,
        "cli_prompt run_once http_public_enqueue http_webhook http_callback_enqueue"
        " http_callback_wake http_control_prompt remote_operator_transport timer_scheduler"
        " runtime_system task_rejoin",
    ),
    (
        AdmissionContext,
        "public_unauthenticated control_authenticated operator_transport_authenticated"
        " external_trigger_capability local_process runtime_owned",
    ),
    (BriefKind, "ack result failure"),
    (AttachmentKind, "file log diff image json"),
    (FailureCategory, "transport protocol runtime task unknown"),
    (Stability, "stable agent_scoped turn_scoped"),
    (
        TerminalKind,
        "completed deferred aborted baseline_over_budget deferred_to_fallback"
        " provider_failed_needs_recovery",
    ),
    (ClosureOutcome, "completed continuable waiting failed"),
    (
        WaitingReason,
        "awaiting_operator_input awaiting_external_change awaiting_task_result awaiting_timer",
    ),
    (ReactivationMode, "continue_active activate_queued"),
    (RuntimePosture, "awake sleeping"),
    (
        TriggerKind,
        "operator_input task_result external_event timer_fire internal_followup system_tick",
    ),
    (TaskStatus, "queued running cancelling completed failed cancelled interrupted"),
    (
        TaskKind,
        "command_task child_agent_task sleep_job subagent_task worktree_subagent_task",
    ),
    (WorkspaceMode, "inherit worktree"),
    (WorkItemState, "open completed"),
    (PlanStatus, "draft ready needs_input"),
    (Readiness, "runnable waiting_for_operator blocked completed"),
    (AgentStatus, "booting awake_idle awake_running awaiting_task asleep paused stopped"),
    (AgentKind, "default named child"),
    (Visibility, "public private"),
    (Ownership, "self_owned parent_supervised"),
    (ProfilePreset, "public_named private_child"),
    (IdentityStatus, "active archived"),
    (WaitState, "active triggered resolved cancelled expired"),
    (WaitKind, "task external operator timer system recheck rest"),
    (TimerStatus, "active completed cancelled"),
    (TriggerDeliveryMode, "wake_hint enqueue_message"),
    (TriggerStatus, "active revoked"),
    (WakeDisposition, "triggered coalesced parked ignored"),
    (ProjectionKind, "canonical_root git_worktree_root"),
    (AccessMode, "shared_read exclusive_write"),
    (
        MemoryDeltaReason,
        "terminal_turn_completed task_rejoined wake_resumed active_work_changed"
        " scope_hints_changed",
    ),
    (
        EpisodeBoundary,
        "active_work_switched wait_boundary result_checkpoint task_rejoined hard_turn_cap",
    ),
]


@pytest.mark.requirement("wire:enum-values-are-the-contract")
@pytest.mark.parametrize(("enum", "values"), CONTRACT, ids=lambda v: getattr(v, "__name__", ""))
def test_an_enum_has_exactly_the_values_of_the_contract(enum: type[StrEnum], values: str) -> None:
    assert {member.value for member in enum} == set(values.split())


@pytest.mark.requirement("wire:enum-values-are-the-contract")
@pytest.mark.parametrize(
    ("union", "field", "tags"),
    [
        (Origin, "kind", "operator channel webhook callback timer system task"),
        (MessageBody, "type", "text json brief"),
        (
            TaskRecovery,
            "kind",
            "child_agent_task command_task subagent_task worktree_subagent_task",
        ),
    ],
    ids=["origin", "body", "recovery"],
)
def test_a_union_has_exactly_the_tags_of_the_contract(union: object, field: str, tags: str) -> None:
    variants = get_args(union)
    assert {variant.__struct_config__.tag for variant in variants} == set(tags.split())
    assert {variant.__struct_config__.tag_field for variant in variants} == {field}


def test_priorities_queue_from_interject_down_to_background() -> None:
    assert [p.value for p in sorted(Priority, key=lambda p: p.band)] == [
        "interject",
        "next",
        "normal",
        "background",
    ]


def test_the_earlier_name_of_the_first_band_is_still_understood() -> None:
    assert msgspec.json.decode(b'"interrupt"', type=Priority) is Priority.INTERJECT
    assert Priority("interrupt").value == "interject"
