"""Agents as surfaces show them: lists, one whole look at an agent, and counts."""

import msgspec
import pytest

from holon.decide.events.audit import audited
from holon.model.agents import AgentStatus, IdentityStatus, Visibility
from holon.model.commits import (
    AppendBrief,
    Applied,
    CreateTask,
    CreateTimer,
    MoveWait,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    SetAgentStatus,
)
from holon.model.events.briefs import BriefKind
from holon.model.events.reads import ActivityCounts, AgentCounts, EventQuery
from holon.model.guidance import (
    InstructionSourceChanged,
    NoteInstructionChange,
    TaintedInstructions,
)
from holon.model.limits import (
    SURFACE_COUNTED_COUNT_MAX,
)
from holon.model.values import (
    AgentId,
    WaitId,
)
from holon.model.wake import WaitKind, WaitState
from holon.model.work import PlanStatus
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, born, make, noted, with_
from tests.support.builders import (
    MAIN,
    a_brief,
    a_commit,
    a_hint,
    a_message,
    a_source_change,
    a_task,
    a_timer,
    a_turn,
    a_wait,
    a_work_item,
    an_agent,
    moment,
)


@pytest.mark.requirement("console:private-agents-are-not-listed")
async def test_only_public_agents_in_use_are_listed_page_by_page(store: Store) -> None:
    await make(
        store,
        born("child", visibility=Visibility.PRIVATE),
        born("archived", status=IdentityStatus.ARCHIVED),
        born("a"),
        born("z"),
        an_agent(OTHER),
    )
    first = await store.reads.agents.public_agents(after=None, limit=2)
    rest = await store.reads.agents.public_agents(after=AgentId("main"), limit=10_000)
    assert [each.agent.identity.agent_id for each in first] == ["a", "main"]
    assert [each.agent.identity.agent_id for each in rest] == ["other", "z"]


async def test_a_listed_agent_says_what_it_could_do_and_what_holds_it(store: Store) -> None:
    stuck = a_work_item("work_stuck", blocked_by="a review")
    runnable = a_work_item("work_run", created_at=moment(5))
    await make(store, PutWorkItem(item=stuck), PutWorkItem(item=runnable))
    await make(store, QueueMessage(message=a_message()), OpenWait(wait=a_wait()))
    listed = next(iter(await store.reads.agents.public_agents(after=None, limit=1)))
    assert listed.queued_count == 1
    assert listed.runnable_work_item_id == "work_run"
    assert listed.stuck_work_item == stuck
    assert [wait.id for wait in listed.waits] == ["wait_1"]


async def test_waits_hints_and_counts_of_an_agent(store: Store) -> None:
    await make(
        store,
        QueueMessage(message=a_message()),
        PutWorkItem(item=a_work_item()),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        ParkWakeHint(hint=a_hint()),
        AppendBrief(brief=a_brief()),
        OpenWait(wait=a_wait("wait_1")),
        OpenWait(wait=a_wait("wait_2", source_id="task_2")),
    )
    gone = MoveWait(agent_id=MAIN, wait_id=WaitId("wait_1"), state=WaitState.CANCELLED, by="test")
    await make(store, gone)
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert [wait.id for wait in surface.waits] == ["wait_2"]
    assert [hint.source_key for hint in surface.hints] == ["github"]
    _, last_seq = await store.reads.events.event_bounds(MAIN)
    assert surface.counts == AgentCounts(
        queued_messages=1,
        open_work_items=1,
        waits=1,
        tasks=1,
        active_timers=1,
        wake_hints=1,
        briefs=1,
        events=last_seq,
    )


async def test_a_surface_is_one_look_that_can_be_followed_on(store: Store) -> None:
    failed = with_(a_brief("brief_f"), kind=BriefKind.FAILURE)
    await make(store, CreateTask(task=a_task()), AppendBrief(brief=failed), noted(MAIN, 1))
    await make(store, AppendBrief(brief=a_brief("brief_ok")))
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert [task.id for task in surface.tasks] == ["task_1"]
    assert surface.last_failure == failed
    assert await store.reads.events.last_failure() == failed
    after = EventQuery(after_seq=surface.last_event_seq, limit=9)
    assert (await store.reads.events.events_page(MAIN, after)).events == ()
    assert await store.reads.agents.agent_surface(AgentId("nobody")) is None


@pytest.mark.requirement("console:activity-is-counted")
@pytest.mark.requirement("daemon-status:asking-is-waiting")
async def test_activity_counts_public_agents_that_run_or_wait(store: Store) -> None:
    assert await store.reads.agents.runtime_activity() == ActivityCounts()
    agents = ["boots", "runs", "idles", "waits", "rests", "stopped", "asks", "plans"]
    await make(store, *(born(name) for name in agents))
    await make(store, born("hidden", visibility=Visibility.PRIVATE))
    postures = {
        "boots": AgentStatus.BOOTING,
        "runs": AgentStatus.AWAKE_RUNNING,
        "hidden": AgentStatus.AWAKE_RUNNING,
        "idles": AgentStatus.AWAKE_IDLE,
        "stopped": AgentStatus.STOPPED,
    }
    await make(
        store,
        *(
            SetAgentStatus(agent_id=AgentId(name), status=status, reason="test")
            for name, status in postures.items()
        ),
        *(
            OpenWait(wait=a_wait(f"wait_{name}", agent_id=AgentId(name)))
            for name in ("waits", "stopped", "runs", "hidden")
        ),
        OpenWait(wait=a_wait("wait_rest", agent_id=AgentId("rests"), kind=WaitKind.REST)),
        *(
            PutWorkItem(
                item=msgspec.structs.replace(
                    a_work_item(f"work_{name}"), agent_id=AgentId(name), plan_status=plan
                )
            )
            for name, plan in (
                ("asks", PlanStatus.NEEDS_INPUT),
                ("runs", PlanStatus.NEEDS_INPUT),
                ("stopped", PlanStatus.NEEDS_INPUT),
                ("plans", PlanStatus.DRAFT),
            )
        ),
        CreateTask(task=a_task()),
    )
    assert await store.reads.agents.runtime_activity() == ActivityCounts(
        # boots, runs, idles, waits, asks its operator, and main with its task
        active_agent_count=6,
        processing_agent_count=2,
        waiting_agent_count=3,
        active_task_count=1,
    )


@pytest.mark.requirement("console:activity-is-counted")
async def test_a_census_counts_every_agent_in_use_and_what_is_kept(store: Store) -> None:
    before = await store.reads.agents.census()
    await make(store, born("stopped"), born("hidden", visibility=Visibility.PRIVATE))
    await make(
        store,
        SetAgentStatus(agent_id=AgentId("stopped"), status=AgentStatus.STOPPED, reason="test"),
        QueueMessage(message=a_message("msg_1")),
    )
    census = await store.reads.agents.census()
    assert census.agents[AgentStatus.STOPPED] == 1
    assert sum(census.agents.values()) == sum(before.agents.values()) + 2
    assert (before.queued_message_count, census.queued_message_count) == (0, 1)
    assert census.kept_event_count == await store.reads.events.last_log_seq()
    assert census.database_bytes >= await store.reads.events.used_bytes() > 0
    assert census.wal_bytes >= 0


async def test_counting_stops_at_the_bound(store: Store) -> None:
    for batch in range(11):
        numbers = range(batch * 100, batch * 100 + 100)
        await make(store, *(AppendBrief(brief=a_brief(f"b_{n}")) for n in numbers))
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert surface.counts.briefs == SURFACE_COUNTED_COUNT_MAX


FIRST = a_source_change(a_turn("turn_1"))


SECOND = a_source_change(a_turn("turn_2"), path="memory/self.md")


CLEAN = a_source_change(a_turn("turn_3"), tainted=False)


def changed(event: InstructionSourceChanged, agent_id: AgentId = MAIN) -> NoteInstructionChange:
    return NoteInstructionChange(agent_id=agent_id, event=event)


@pytest.mark.requirement("provenance:instruction-taint-is-shown")
async def test_the_newest_tainted_change_is_read_with_their_number(store: Store) -> None:
    await make(store, an_agent(OTHER))
    await make(store, changed(FIRST), changed(CLEAN, OTHER))
    both = audited(a_commit("two", changed(FIRST), changed(SECOND), changed(CLEAN), at=moment(7)))
    assert await store.apply(both) == Applied()
    assert await store.apply(both) == Applied(replayed=True)
    found, clean = (
        await store.reads.agents.agent_surface(MAIN),
        await store.reads.agents.agent_surface(OTHER),
    )
    assert found is not None
    assert found.tainted == TaintedInstructions(
        path="memory/self.md", changed_at=moment(7), turn_id=SECOND.turn_id, change_count=3
    )
    assert clean is not None
    assert clean.tainted is None
