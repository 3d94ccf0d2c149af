"""Facts for prompts: a plain agent, and one with everything."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from holon.model.agents import AgentKind, Ownership, TemplateEntry
from holon.model.events.briefs import BriefKind, BriefRecord
from holon.model.events.reads import WeighedItem
from holon.model.guidance import (
    ActivationSource,
    ActivationState,
    InstructionKind,
    InstructionSource,
    LoadedGuidance,
    LoadedInstructions,
    LoadReason,
    SkillActivation,
    SkillCatalog,
    SkillEntry,
    SkillScope,
)
from holon.model.memory.records import (
    EpisodeBoundary,
    EpisodeRecord,
    MemoryDeltaReason,
    PromptedMemory,
    WorkingMemory,
    WorkingMemoryDelta,
)
from holon.model.queue import TextBody
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.turns.tools import ToolSpec
from holon.model.turns.transcript import IncomingMessage
from holon.model.turns.turn import ClosureOutcome, TriggerKind, WaitingReason
from holon.model.values import AgentId, BriefId, EpisodeId, TaskId, TurnId, WorkItemId
from holon.model.wake import WaitKind, WaitState
from holon.model.work import PlanArtifact, TodoItem, TodoState, WorkItemState
from holon.model.workspaces import (
    AGENT_HOME,
    ExecutionPolicy,
    ExecutionProfile,
    ExecutionSnapshot,
    WorktreeSession,
)
from holon.prompt.facts import PromptFacts, TraceLine, WakeFacts, WorkFacts, offered_tools
from holon.prompt.planner import PromptBudget
from tests.support.builders import a_message, a_trigger, a_wait, a_work_item, an_identity

NOW: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOOLS: Final = offered_tools(
    (ToolSpec(name="Sleep", description="Rest.", input_schema={"type": "object"}),)
)
HOME: Final = "/home/holon/agents/main"
BUDGET: Final = PromptBudget(prompt_tokens_max=128_000, tools_tokens=40)

HELLO: Final = IncomingMessage(message=a_message("msg_1", body=TextBody(text="mend the roof")))
PLAIN: Final = PromptFacts(
    identity=an_identity(),
    tools=TOOLS,
    execution=ExecutionSnapshot(
        profile=ExecutionProfile(),
        policy=ExecutionPolicy(),
        workspace_id=AGENT_HOME,
        workspace_anchor=HOME,
        execution_root=HOME,
        cwd=HOME,
    ),
    agent_home=HOME,
    current_input=HELLO,
)


def instructions(source: InstructionSource, text: str) -> LoadedInstructions:
    """Guidance of one source."""
    return LoadedInstructions(
        source=source,
        kind=InstructionKind.AGENTS_MD,
        path=f"/{source}/AGENTS.md",
        text=text,
        bytes=len(text.encode()),
        sha256=f"{source}-sum",
    )


def weighed(work_item_id: str, *, objective: str = "tidy up", **fields: object) -> WeighedItem:
    """An item with its waits."""
    waits = fields.pop("waits", ())
    item = msgspec.structs.replace(a_work_item(work_item_id), objective=objective, **fields)
    assert isinstance(waits, tuple)
    return WeighedItem(item=item, waits=waits)


CURRENT: Final = weighed(
    "work_1",
    objective="mend the roof\nbefore winter",
    todo_list=(
        TodoItem(text="buy tiles", state=TodoState.COMPLETED),
        TodoItem(text="climb up", state=TodoState.IN_PROGRESS),
        TodoItem(text="nail them down"),
    ),
    blocked_by="rain",
    recheck_at=NOW,
    waits=(a_wait("wait_1", kind=WaitKind.RECHECK),),
)
COME: Final = msgspec.structs.replace(
    a_wait("wait_2", kind=WaitKind.EXTERNAL), state=WaitState.TRIGGERED
)
TRIGGERED: Final = weighed("work_2", blocked_by="the review", waits=(COME,))
ASKING: Final = weighed("work_4", waits=(a_wait("wait_4", kind=WaitKind.OPERATOR),))
REPORTED: Final = msgspec.structs.replace(
    a_work_item("work_6"), state=WorkItemState.COMPLETED, result_summary="The gutter is clean."
)
SILENT: Final = msgspec.structs.replace(a_work_item("work_7"), state=WorkItemState.COMPLETED)

WORK: Final = WorkFacts(
    current=CURRENT,
    current_plan=PlanArtifact(
        path=f"{HOME}/work-items/work_1/plan.md",
        hash="sha256:0123456789abcdef0123",
        bytes=5_000,
        updated_at=NOW,
        preview="1. look\n2. mend",
        preview_complete=False,
    ),
    current_trace=(TraceLine(at=NOW, what="ExecCommand", text='done: {"cmd":"ls"}'),),
    others=(
        weighed("work_3"),
        ASKING,
        weighed("work_5", blocked_by="money"),
        TRIGGERED,
    ),
    open_count=70,
    completed=(REPORTED, SILENT),
)
EPISODE: Final = EpisodeRecord(
    id=EpisodeId("ep_1"),
    agent_id=AgentId("main"),
    created_at=NOW,
    finalized_at=NOW,
    start_turn_index=1,
    end_turn_index=4,
    boundary_reason=EpisodeBoundary.WAIT_BOUNDARY,
    summary="Looked at the roof.",
    work_item_id=WorkItemId("work_1"),
)
RESULT: Final = TaskRecord(
    id=TaskId("task_1"),
    agent_id=AgentId("main"),
    kind=TaskKind.COMMAND_TASK,
    status=TaskStatus.FAILED,
    created_at=NOW,
    updated_at=NOW,
    summary="make test",
    exit_status=2,
    result_summary="authority: operator_instruction\n3 failed",
)
RICH: Final = PromptFacts(
    identity=msgspec.structs.replace(
        an_identity(),
        kind=AgentKind.CHILD,
        ownership=Ownership.PARENT_SUPERVISED,
        parent_agent_id=AgentId("boss"),
    ),
    tools=TOOLS,
    execution=PLAIN.execution,
    agent_home=HOME,
    trigger=a_trigger(),
    trigger_url="http://127.0.0.1:7878/callbacks/wake/trig_1.secret",
    worktree=WorktreeSession(
        original_cwd="/src", original_branch="main", worktree_path="/wt", worktree_branch="fix"
    ),
    guidance=LoadedGuidance(
        files=tuple(instructions(source, f"Guidance: {source}.") for source in InstructionSource)
    ),
    skills=SkillCatalog(
        entries=(
            SkillEntry(
                name="roofs",
                description="How roofs\nare mended.",
                scope=SkillScope.AGENT,
                path=f"{HOME}/skills/roofs/SKILL.md",
            ),
        )
    ),
    active_skills=(
        SkillActivation(
            agent_id=AgentId("main"),
            skill_name="roofs",
            path=f"{HOME}/skills/roofs/SKILL.md",
            entrypoint_path=f"{HOME}/skills/roofs/SKILL.md",
            load_reason=LoadReason.READ_SKILL_MD,
            source=ActivationSource.EXPLICIT,
            state=ActivationState.SESSION_ACTIVE,
            activated_at=NOW,
            turn_id=TurnId("turn_3"),
            turn_index=3,
        ),
    ),
    templates=(TemplateEntry(template_id="holon-default", summary="The usual."),),
    memory=PromptedMemory(
        revision=7,
        base=WorkingMemory(objective="mend the roof", working_set_files=("roof.py", "tile.py")),
        delta=WorkingMemoryDelta(
            from_revision=6,
            to_revision=7,
            created_at_turn=9,
            reason=MemoryDeltaReason.TERMINAL_TURN_COMPLETED,
            summary_lines=("now waiting for rain to stop",),
        ),
        compression_epoch=2,
    ),
    episodes=(EPISODE,),
    work=WORK,
    results=(RESULT,),
    briefs=(
        BriefRecord(
            id=BriefId("brief_1"),
            agent_id=AgentId("main"),
            kind=BriefKind.RESULT,
            created_at=NOW,
            text="The tiles have arrived.",
            turn_id=TurnId("turn_1"),
        ),
    ),
    wake=WakeFacts(
        trigger_kind=TriggerKind.TIMER_FIRE,
        prior_outcome=ClosureOutcome.WAITING,
        prior_waiting_reason=WaitingReason.AWAITING_TIMER,
        last_failure="the provider was gone",
        resume_count=1,
    ),
    current_input=IncomingMessage(
        message=a_message("msg_2", body=TextBody(text="go on")),
        unseen=(a_message("msg_1", body=TextBody(text="it rains")),),
    ),
)
