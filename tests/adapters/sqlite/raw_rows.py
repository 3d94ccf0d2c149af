"""A database with one row of everything, for tests that look at the schema itself."""

import apsw

from holon.adapters.sqlite.database.connection import open_memory
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from holon.decide.workspaces import attach_target_of
from holon.model.agents import AgentContext
from holon.model.commits import (
    AppendBrief,
    AppendDeliverySummary,
    AppendTranscript,
    Applied,
    Change,
    ClaimMessage,
    CreateTask,
    CreateTimer,
    CreateTrigger,
    DeliverTrigger,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RememberActivation,
    StartToolCall,
)
from holon.model.guidance import ActivateSkill, NoteInstructionChange
from holon.model.memory.records import (
    ArchiveEpisode,
    MemoryDeltaReason,
    MemoryState,
    RememberWork,
    WorkingMemoryDelta,
)
from holon.model.turns.compaction import RememberContext
from holon.model.values import MessageId, SummaryId, WorkItemId
from holon.model.wake import WakeDisposition
from holon.model.work import DeliverySummary
from holon.model.workspaces import (
    AttachWorkspace,
    EnterWorkspace,
    ResolvedDirectory,
    WorkspaceBindings,
)
from tests.decide.memory_rows import an_episode
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_hint,
    a_message,
    a_round,
    a_skill_activation,
    a_source_change,
    a_task,
    a_timer,
    a_tool_call,
    a_trigger,
    a_turn,
    a_wait,
    a_work_item,
    an_activation,
    an_agent,
    an_entry,
)


def a_writer() -> tuple[apsw.Connection, CommitWriter]:
    """An empty database in memory and its writer."""
    connection = open_memory()
    migrate(connection)
    return connection, CommitWriter(connection)


def apply(writer: CommitWriter, commit_id: str, *changes: Change) -> None:
    """Apply changes that must be accepted."""
    assert writer.apply_group([audited(a_commit(commit_id, *changes))]).results == [Applied()]


def everything() -> tuple[apsw.Connection, CommitWriter]:
    """One row of everything: `msg_1` is claimed with an open turn, `msg_2` is queued."""
    connection, writer = a_writer()
    turn = a_turn()
    place = attach_target_of(ResolvedDirectory(path="/srv/site"), WorkspaceBindings(), now=START)
    summary = DeliverySummary(
        id=SummaryId("sum_1"),
        agent_id=MAIN,
        work_item_id=WorkItemId("work_1"),
        created_at=START,
        text="done",
    )
    apply(
        writer,
        "everything",
        an_agent(),
        QueueMessage(message=a_message("msg_1"), tick_key="t"),
        QueueMessage(message=a_message("msg_2"), idempotency_key="k", body_digest="d"),
        ClaimMessage(agent_id=MAIN, message_id=MessageId("msg_1"), generation=1, passed_over=0),
        OpenTurn(turn=turn),
        AppendTranscript(entry=an_entry(turn, position=0, data=a_round())),
        StartToolCall(call=a_tool_call(turn)),
        AppendBrief(brief=a_brief(turn_id=turn.turn_id)),
        PutWorkItem(item=a_work_item()),
        AppendDeliverySummary(summary=summary),
        RememberActivation(memory=an_activation()),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        ParkWakeHint(hint=a_hint()),
        OpenWait(wait=a_wait(work_item_id=WorkItemId("work_1"))),
        CreateTrigger(trigger=a_trigger()),
        DeliverTrigger(
            hint=a_hint(source_key="trigger:trig_1"),
            external_trigger_id=a_trigger().external_trigger_id,
            epoch=1,
            disposition=WakeDisposition.TRIGGERED,
            delivery_key="0" * 64,
            content_digest="1" * 64,
        ),
        AttachWorkspace(agent_id=MAIN, entry=place.entry),
        EnterWorkspace(agent_id=MAIN, place=place.place, occupancy_id="occ_1"),
        ActivateSkill(activation=a_skill_activation(turn)),
        RememberContext(
            agent_id=MAIN, context=AgentContext(history_from_turn=2, compression_epoch=1)
        ),
        NoteInstructionChange(agent_id=MAIN, event=a_source_change(turn)),
        RememberWork(
            agent_id=MAIN,
            state=MemoryState(revision=2, last_prompted_revision=1, archived_episode_count=1),
            moved=WorkingMemoryDelta(
                from_revision=1,
                to_revision=2,
                created_at_turn=1,
                reason=MemoryDeltaReason.TERMINAL_TURN_COMPLETED,
            ),
        ),
        ArchiveEpisode(episode=an_episode(1)),
    )
    return connection, writer
