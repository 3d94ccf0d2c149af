"""The three inspection surfaces of an agent: list entry, summary and state."""

import msgspec
import pytest

from holon.model.agents import AgentStatus, IdentityStatus
from holon.model.events.briefs import BriefKind, FailureArtifact, FailureCategory
from holon.model.events.reads import AgentCounts, LastExchange, ListedAgent, WeighedItem
from holon.model.limits import SUMMARY_CHARS_MAX
from holon.model.providers.attempts import TokenUsage
from holon.model.tasks import TaskStatus
from holon.model.turns.turn import (
    ClosureOutcome,
    Continuable,
    Failed,
    LivenessOnly,
    ReactivationMode,
    TriggerKind,
    Waiting,
    WaitingReason,
    WorkSignal,
    WorkSignalStatus,
)
from holon.model.values import TriggerId, TurnId, WorkItemId
from holon.model.wake import ExternalTrigger, TriggerDeliveryMode, TriggerStatus
from holon.projections.agents.list import RuntimeModels, agent_list_entry, could_wait
from holon.projections.agents.state import agent_state_snapshot, task_slim_view
from holon.projections.agents.summary import SummaryContext, agent_summary, closure_view
from tests.projections.surface_facts import (
    a_listed_agent,
    a_surface,
    a_workspace,
    an_agent_state,
)
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_hint,
    a_task,
    a_terminal,
    a_timer,
    a_turn,
    a_wait,
    a_work_item,
    an_identity,
)

TRIGGER = ExternalTrigger(
    external_trigger_id=TriggerId("trig_1"),
    target_agent_id=MAIN,
    delivery_mode=TriggerDeliveryMode.WAKE_HINT,
    status=TriggerStatus.ACTIVE,
    created_at=START,
)
CLAUDE = RuntimeModels(default="anthropic/claude", fallbacks=("openai/gpt", "anthropic/claude"))
AROUND = SummaryContext(models=CLAUDE, workspace=a_workspace(), triggers=(TRIGGER,))


@pytest.mark.requirement("console:list-entries-are-narrow")
def test_a_list_entry_has_what_choosing_needs_and_nothing_nested() -> None:
    entry = agent_list_entry(a_listed_agent(), CLAUDE, workspace=a_workspace())
    assert set(type(entry).__struct_fields__) == {
        "identity",
        "status",
        "scheduling_posture",
        "lifecycle",
        "pending",
        "model",
        "current_run_id",
        "waiting_reason",
        "active_workspace_entry",
    }
    wire = msgspec.to_builtins(entry)
    assert wire["pending"] == 0
    assert wire["identity"]["status"] == "active"
    assert "occupancy_id" not in wire["active_workspace_entry"]


def test_an_entry_says_what_the_agent_waits_for_and_whose_model_it_has() -> None:
    waiting = Waiting(waiting_reason=WaitingReason.AWAITING_TIMER)
    agent = an_agent_state(override_model="openai/gpt")
    entry = agent_list_entry(a_listed_agent(agent), CLAUDE, closure=waiting)
    assert entry.waiting_reason is WaitingReason.AWAITING_TIMER
    assert (entry.model.source, entry.model.effective_model) == ("agent_override", "openai/gpt")
    other = agent_list_entry(a_listed_agent(), CLAUDE)
    assert (other.model.source, other.model.effective_model) == (
        "runtime_default",
        "anthropic/claude",
    )


@pytest.mark.requirement("provider-retry:model-state-is-explicit")
@pytest.mark.parametrize(("own", "source"), [(None, "runtime_default"), ("m/a", "agent_override")])
def test_an_own_model_is_shown_as_such_even_when_it_is_the_default(
    own: str | None, source: str
) -> None:
    agent = an_agent_state() if own is None else an_agent_state(override_model=own)
    shown = agent_list_entry(a_listed_agent(agent), RuntimeModels(default="m/a")).model
    assert (shown.source, shown.override_model) == (source, own)
    assert shown.effective_model == shown.runtime_default_model == "m/a"


@pytest.mark.requirement("console:model-state-is-explicit")
def test_a_summary_says_which_fallbacks_there_are_and_which_model_answered_last() -> None:
    fell_back = LastExchange(requested_model="anthropic/claude", active_model="openai/gpt")
    surface = msgspec.structs.replace(a_surface(), last_exchange=fell_back)
    told = msgspec.to_builtins(agent_summary(surface, AROUND).model)
    assert told == {
        "source": "runtime_default",
        "runtime_default_model": "anthropic/claude",
        "effective_model": "anthropic/claude",
        "effective_fallback_models": ("openai/gpt",),
        "fallback_active": True,
        "requested_model": "anthropic/claude",
        "active_model": "openai/gpt",
    }
    quiet = msgspec.to_builtins(agent_summary(a_surface(), AROUND).model)
    assert quiet["fallback_active"] is False


@pytest.mark.requirement("console:state-names-what-waits")
def test_a_state_names_its_tasks_its_hint_and_what_is_left_of_old_turns() -> None:
    surface = msgspec.structs.replace(
        a_surface(),
        tasks=(a_task("task_1"), a_task("task_2", status=TaskStatus.COMPLETED)),
        hints=(a_hint(),),
        let_go_turn_count=3,
        recap=("turn 1: the build was red", "turn 2: it was fixed"),
    )
    told = msgspec.to_builtins(agent_summary(surface, AROUND).agent)
    assert told["active_task_ids"] == ("task_1",)
    assert told["pending_wake_hint"]["source_key"] == "github"
    assert told["compacted_message_count"] == 3
    assert told["context_summary"] == "turn 1: the build was red\nturn 2: it was fixed"
    assert (told["active_workspace_id"], told["cwd"]) == (
        a_workspace().workspace_id,
        a_workspace().cwd,
    )
    idle = msgspec.to_builtins(agent_summary(a_surface(), AROUND).agent)
    assert idle["compacted_message_count"] == 0
    assert "context_summary" not in idle


@pytest.mark.requirement("console:execution-is-nested-alike")
def test_the_execution_snapshot_is_nested_and_says_what_is_false() -> None:
    told = msgspec.to_builtins(agent_summary(a_surface(), AROUND).execution)
    assert told["profile"] == msgspec.to_builtins(AROUND.profile)
    assert told["profile"]["process_execution_exposed"] in (True, False)
    assert told["policy"]["path_confinement"] == "not_enforced"
    assert told["execution_root"] == a_workspace().execution_root


@pytest.mark.requirement("console:list-and-status-name-one-wait")
@pytest.mark.parametrize(
    "listed",
    [
        a_listed_agent(an_agent_state(open_turn_id=TurnId("turn_1"))),
        a_listed_agent(queued_count=1),
        a_listed_agent(stuck_work_item=a_work_item(blocked_by="a review")),
        a_listed_agent(waits=(a_wait(),)),
    ],
    ids=["an open turn", "a queued message", "an item that may not run", "a wait"],
)
def test_an_agent_could_wait_for_whatever_there_is_of_it(listed: ListedAgent) -> None:
    assert could_wait(listed)
    assert not could_wait(a_listed_agent())
    assert not could_wait(a_listed_agent(runnable_work_item_id=WorkItemId("work_1")))


@pytest.mark.requirement("console:lifecycle-says-how-to-resume")
@pytest.mark.parametrize(
    ("status", "resume", "accepts"),
    [
        (AgentStatus.ASLEEP, False, True),
        (AgentStatus.AWAKE_RUNNING, False, True),
        (AgentStatus.PAUSED, True, True),
        (AgentStatus.STOPPED, True, False),
    ],
)
def test_an_agent_that_is_down_says_how_to_bring_it_up(
    status: AgentStatus, resume: bool, accepts: bool
) -> None:
    lifecycle = agent_list_entry(a_listed_agent(an_agent_state(status=status)), CLAUDE).lifecycle
    assert (lifecycle.resume_required, lifecycle.wake_requires_resume) == (resume, resume)
    assert lifecycle.accepts_external_messages is accepts
    if resume:
        assert lifecycle.operator_hint is not None
        assert "a wake has no effect, resume it first" in lifecycle.operator_hint
        assert ("accepts no prompts" in lifecycle.operator_hint) is not accepts
        assert lifecycle.resume_cli_hint == "holon agent resume main"
        assert lifecycle.resume_control_path == "/control/agents/main/resume"
    else:
        assert lifecycle.operator_hint is None


def test_an_archived_agent_takes_nothing_and_cannot_be_resumed() -> None:
    identity = msgspec.structs.replace(an_identity(), status=IdentityStatus.ARCHIVED)
    entry = agent_list_entry(a_listed_agent(an_agent_state(identity=identity)), CLAUDE)
    assert not entry.lifecycle.accepts_external_messages
    assert not entry.lifecycle.resume_required


@pytest.mark.requirement("console:state-embeds-the-status")
def test_the_state_begins_with_the_very_summary_the_status_gives() -> None:
    surface = a_surface()
    assert agent_state_snapshot(surface, AROUND).agent == agent_summary(surface, AROUND)


def test_a_summary_of_a_new_agent_says_every_figure() -> None:
    wire = msgspec.to_builtins(agent_summary(a_surface(), SummaryContext(models=CLAUDE)))
    assert wire["agent"]["pending"] == 0
    assert wire["agent"]["total_model_rounds"] == 0
    assert wire["counts"] == msgspec.to_builtins(AgentCounts(events=3))
    assert wire["active_wait_conditions"] == ()
    assert (wire["active_task_count"], wire["recent_event_count"]) == (0, 3)
    assert wire["token_usage"]["total"]["total_tokens"] == 0
    assert "closure" not in wire


@pytest.mark.requirement("console:the-last-failure-carries-its-artifact")
def test_a_failed_turn_stays_visible_after_it_ended() -> None:
    failure = FailureArtifact(
        category=FailureCategory.TRANSPORT, kind="timeout", summary="no answer"
    )
    brief = msgspec.structs.replace(a_brief(), kind=BriefKind.FAILURE, failure=failure)
    surface = msgspec.structs.replace(
        a_surface(an_agent_state(last_terminal=a_terminal(a_turn()))),
        last_failure=brief,
        last_usage=TokenUsage(input_tokens=4),
    )
    summary = agent_summary(surface, AROUND)
    assert summary.agent.last_runtime_failure is not None
    assert summary.agent.last_runtime_failure.summary == "no answer"
    assert summary.agent.last_runtime_failure.failure_artifact == failure
    assert summary.agent.last_turn_terminal is not None
    assert summary.agent.last_turn_terminal.last_assistant_message == "done"
    assert summary.token_usage.last_turn == TokenUsage(input_tokens=4)


def test_a_closure_shows_what_applies_to_it() -> None:
    failed = closure_view(Failed(summary="no\nanswer", evidence=("a", "b")))
    assert (failed.outcome, failed.summary, failed.evidence) == ("failed", "no answer", ("a", "b"))
    waiting = closure_view(Waiting(waiting_reason=WaitingReason.AWAITING_TIMER))
    assert msgspec.to_builtins(waiting) == {
        "outcome": "waiting",
        "evidence": (),
        "runtime_posture": "sleeping",
        "waiting_reason": "awaiting_timer",
    }
    signal = WorkSignal(
        work_item_id=WorkItemId("work_1"),
        status=WorkSignalStatus.QUEUED,
        reactivation_mode=ReactivationMode.ACTIVATE_QUEUED,
    )
    assert closure_view(Continuable(work_signal=signal)).work_signal == signal


@pytest.mark.requirement("console:last-continuation-is-shown")
@pytest.mark.requirement("console:let-go-messages-are-counted")
def test_a_sign_of_life_and_what_is_no_longer_read_are_shown_for_what_they_are() -> None:
    silent = LivenessOnly(
        trigger_kind=TriggerKind.SYSTEM_TICK,
        prior_outcome=ClosureOutcome.WAITING,
        prior_waiting_reason=WaitingReason.AWAITING_OPERATOR_INPUT,
        evidence=("nothing_to_say",),
    )
    surface = msgspec.structs.replace(a_surface(), last_continuation=silent, let_go_turn_count=7)
    shown = agent_summary(surface, AROUND).agent
    assert shown.compacted_message_count == 7
    assert msgspec.to_builtins(shown.last_continuation) == {
        "model_visible": False,
        "continuation_class": "liveness_only",
        "prior_closure_outcome": "waiting",
        "matched_waiting_reason": False,
        "trigger_kind": "system_tick",
        "prior_waiting_reason": "awaiting_operator_input",
        "evidence": ("nothing_to_say",),
    }


@pytest.mark.requirement("console:state-is-a-bootstrap")
def test_the_state_has_everything_a_projection_starts_with() -> None:
    item = WeighedItem(item=a_work_item(), waits=())
    surface = msgspec.structs.replace(
        a_surface(an_agent_state(current_work_item_id=WorkItemId("work_1"))),
        tasks=(a_task(),),
        timers=(a_timer(),),
        work_items=(item,),
        waits=(a_wait(),),
        hints=(a_hint(body="secret text"),),
        last_event_seq=41,
    )
    state = agent_state_snapshot(surface, AROUND)
    assert state.event_cursor == 41
    assert [view.is_current for view in state.work_items] == [True]
    assert [view.task_id for view in state.tasks] == ["task_1"]
    assert [view.id for view in state.timers] == ["timer_1"]
    assert [view.id for view in state.waiting_intents] == ["wait_1"]
    assert state.workspace.active_workspace_entry is not None
    assert b"secret text" not in msgspec.json.encode(state)
    wire = msgspec.to_builtins(state)
    assert wire["session"] == {"pending_count": 0}


@pytest.mark.requirement("console:confinement-is-said-in-words")
def test_what_is_not_confined_is_called_not_enforced() -> None:
    policy = msgspec.to_builtins(agent_state_snapshot(a_surface(), AROUND))["execution"]["policy"]
    assert policy == {
        "message_ingress": "hard_enforced",
        "control_plane": "hard_enforced",
        "cwd_rooting": "hard_enforced",
        "process_execution": "runtime_shaped",
        "path_confinement": "not_enforced",
        "write_confinement": "not_enforced",
        "network_confinement": "not_enforced",
        "secret_isolation": "not_enforced",
        "child_process_containment": "not_enforced",
    }


@pytest.mark.requirement("console:no-capability-in-a-view")
def test_a_trigger_is_shown_without_anything_it_could_be_used_with() -> None:
    state = agent_state_snapshot(a_surface(), AROUND)
    (view,) = state.external_triggers
    assert set(type(view).__struct_fields__) == {
        "external_trigger_id",
        "target_agent_id",
        "delivery_mode",
        "status",
        "created_at",
        "delivery_count",
        "revoked_at",
        "last_delivered_at",
        "trigger_url",
    }
    assert view.trigger_url is None
    based = msgspec.structs.replace(AROUND, trigger_base_url="http://127.0.0.1:7878")
    (view,) = agent_state_snapshot(a_surface(), based).external_triggers
    assert view.trigger_url == (
        f"http://127.0.0.1:7878/callbacks/wake/{view.external_trigger_id}.***"
    )


def test_a_slim_task_shows_how_it_ended_and_none_of_its_output() -> None:
    task = msgspec.structs.replace(
        a_task(), result_summary="exit 0\nline after line", summary="x" * 9_000, exit_status=0
    )
    slim = task_slim_view(task)
    assert (slim.result_summary, slim.exit_status) == ("exit 0", 0)
    assert slim.summary is not None
    assert len(slim.summary) == SUMMARY_CHARS_MAX
