"""A wake hint wakes the free, waits for the busy, never interrupts and never gets lost."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.queue.message_view import hint_tick_body
from holon.decide.wake.hints import (
    Coalesce,
    IgnoreHint,
    Park,
    TriggerNow,
    WakeDecision,
    decide_wake,
    take_hint,
)
from holon.model.agents import AgentStatus
from holon.model.commits import AgentAdmits, Commit, ParkWakeHint, RecordEvent, WakeHintAtRevision
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import (
    JSON_DEPTH_MAX,
    WAKE_HINT_BODY_BYTES_MAX,
    WAKE_HINT_SOURCES_COUNT_MAX,
)
from holon.model.queue import JsonBody
from holon.model.values import JsonValue, TriggerId, WaitId
from holon.model.wake import WakeDisposition, WakeHint
from tests.decide.sample_rows import HEAD, HINT, NOW, agent_in, seconds

vary = msgspec.structs.replace
FULL_HINT = vary(
    HINT,
    revision=3,
    description="the build finished",
    source="ci",
    resource="run/7",
    external_trigger_id=TriggerId("trig_1"),
    wait_id=WaitId("wait_1"),
    body={"status": "red"},
    content_type="application/json",
    correlation_id="c1",
    causation_id="d1",
)
REPEAT = vary(HINT, reason="again", created_at=NOW + seconds(5), updated_at=NOW + seconds(5))


def decide(
    status: AgentStatus | None,
    *,
    busy: bool = False,
    parked: WakeHint | None = None,
    parked_count: int = 0,
    incoming: WakeHint = HINT,
) -> WakeDecision:
    return decide_wake(
        status, busy=busy, parked=parked, parked_count=parked_count, incoming=incoming
    )


# By hand: what becomes of a first hint, by posture, when the agent is (free, busy).
FIRST_HINT: dict[AgentStatus, tuple[type[WakeDecision], type[WakeDecision]]] = {
    AgentStatus.BOOTING: (Park, Park),
    AgentStatus.AWAKE_IDLE: (TriggerNow, Park),
    AgentStatus.AWAKE_RUNNING: (Park, Park),
    AgentStatus.AWAITING_TASK: (Park, Park),
    AgentStatus.ASLEEP: (TriggerNow, Park),
    AgentStatus.PAUSED: (Park, Park),
    AgentStatus.STOPPED: (IgnoreHint, IgnoreHint),
}


@pytest.mark.requirement("wake:hint-by-posture")
@pytest.mark.parametrize(
    ("status", "busy", "is_parked", "is_full"),
    list(itertools.product(AgentStatus, (False, True), (False, True), (False, True))),
)
def test_every_posture_answers_every_hint_as_written(
    status: AgentStatus, busy: bool, is_parked: bool, is_full: bool
) -> None:
    decision = decide(
        status,
        busy=busy,
        parked=HINT if is_parked else None,
        parked_count=WAKE_HINT_SOURCES_COUNT_MAX if is_full else 1,
        incoming=REPEAT,
    )
    if status is AgentStatus.STOPPED:
        assert isinstance(decision, IgnoreHint)
    elif is_parked:
        assert isinstance(decision, Coalesce)
    elif is_full:
        assert decision == IgnoreHint(reason="too_many_sources")
    else:
        assert isinstance(decision, FIRST_HINT[status][busy])
        assert not isinstance(decision, IgnoreHint)
        assert decision.hint == REPEAT


@pytest.mark.requirement("wake:free-agent-is-woken-at-once")
@pytest.mark.parametrize("status", [AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP])
def test_a_free_agent_is_woken_at_once(status: AgentStatus) -> None:
    assert decide(status, incoming=FULL_HINT) == TriggerNow(hint=FULL_HINT)


@pytest.mark.requirement("wake:busy-agent-is-never-interrupted")
@pytest.mark.parametrize("status", AgentStatus)
def test_a_busy_agent_is_never_woken(status: AgentStatus) -> None:
    assert not isinstance(decide(status, busy=True), TriggerNow)


@pytest.mark.requirement("wake:busy-agent-is-never-interrupted")
def test_a_running_agent_is_busy_by_its_posture_alone() -> None:
    assert decide(AgentStatus.AWAKE_RUNNING) == Park(hint=HINT)


@pytest.mark.requirement("wake:parked-when-not-eligible")
@pytest.mark.parametrize(
    "status", [AgentStatus.BOOTING, AgentStatus.AWAITING_TASK, AgentStatus.PAUSED]
)
def test_a_hint_is_kept_for_an_agent_that_cannot_take_it_yet(status: AgentStatus) -> None:
    assert decide(status, incoming=FULL_HINT) == Park(hint=FULL_HINT)


@pytest.mark.requirement("wake:stopped-agent-gives-resume-guidance")
@pytest.mark.parametrize("parked", [None, HINT], ids=["first", "repeat"])
def test_a_stopped_agent_ignores_hints_and_says_how_to_resume_it(parked: WakeHint | None) -> None:
    decision = decide(AgentStatus.STOPPED, parked=parked)
    assert isinstance(decision, IgnoreHint)
    assert decision.reason == "agent_stopped"
    assert decision.refusal is not None
    assert decision.refusal.code is RefusalCode.AGENT_STOPPED
    assert decision.refusal.resume_path == "/control/agents/main/resume"


def test_a_hint_for_nobody_is_ignored_by_name() -> None:
    decision = decide(None)
    assert isinstance(decision, IgnoreHint)
    assert decision.refusal is not None
    assert decision.refusal.code is RefusalCode.AGENT_NOT_FOUND


def test_a_body_may_be_as_large_as_its_limit_and_not_a_byte_larger() -> None:
    fitting = "x" * (WAKE_HINT_BODY_BYTES_MAX - len('""'))
    assert decide(AgentStatus.ASLEEP, incoming=vary(HINT, body=fitting)) == TriggerNow(
        hint=vary(HINT, body=fitting)
    )
    decision = decide(AgentStatus.ASLEEP, incoming=vary(HINT, body=f"{fitting}x"))
    assert isinstance(decision, IgnoreHint)
    assert decision.refusal is not None
    assert decision.refusal.code is RefusalCode.BODY_TOO_LARGE


def nested(depth: int) -> JsonValue:
    body: JsonValue = "deep"
    for _ in range(depth):
        body = [body]
    return body


def test_a_body_may_be_as_deep_as_a_tick_can_carry_and_not_a_level_deeper() -> None:
    fitting = vary(HINT, body=nested(JSON_DEPTH_MAX - 3))
    assert decide(AgentStatus.ASLEEP, incoming=fitting) == TriggerNow(hint=fitting)
    assert isinstance(hint_tick_body([fitting]), JsonBody)
    decision = decide(AgentStatus.ASLEEP, incoming=vary(HINT, body=nested(JSON_DEPTH_MAX - 2)))
    assert isinstance(decision, IgnoreHint)
    assert decision.refusal is not None
    assert decision.refusal.code is RefusalCode.BODY_TOO_LARGE


# --- coalescing -----------------------------------------------------------------------------------


@pytest.mark.requirement("wake:repeats-coalesce")
def test_a_repeat_adds_to_the_revision_and_keeps_the_beginning() -> None:
    decision = decide(AgentStatus.AWAKE_RUNNING, parked=HINT, incoming=REPEAT)
    assert decision == Coalesce(
        hint=vary(HINT, reason="again", revision=2, created_at=NOW, updated_at=NOW + seconds(5))
    )


@pytest.mark.requirement("wake:provenance-survives")
def test_a_bare_repeat_keeps_everything_said_before() -> None:
    decision = decide(AgentStatus.AWAKE_RUNNING, parked=FULL_HINT, incoming=REPEAT)
    assert decision == Coalesce(
        hint=vary(FULL_HINT, reason="again", revision=4, updated_at=REPEAT.updated_at)
    )


@pytest.mark.requirement("wake:provenance-survives")
def test_a_full_repeat_replaces_everything_said_before() -> None:
    news = vary(
        REPEAT,
        description="it finished again",
        source="ci2",
        resource="run/8",
        external_trigger_id=TriggerId("trig_2"),
        wait_id=WaitId("wait_2"),
        body={"status": "green"},
        content_type="text/json",
        correlation_id="c2",
        causation_id="d2",
    )
    decision = decide(AgentStatus.AWAKE_RUNNING, parked=FULL_HINT, incoming=news)
    assert decision == Coalesce(hint=vary(news, revision=4, created_at=NOW))


def test_a_body_and_its_content_type_are_replaced_together() -> None:
    news = vary(REPEAT, body="green")
    decision = decide(AgentStatus.AWAKE_RUNNING, parked=FULL_HINT, incoming=news)
    assert isinstance(decision, Coalesce)
    assert (decision.hint.body, decision.hint.content_type) == ("green", None)


@pytest.mark.parametrize("body", [0, False, "", [], {}], ids=repr)
def test_an_empty_body_is_a_body(body: JsonValue) -> None:
    news = vary(REPEAT, body=body)
    decision = decide(AgentStatus.AWAKE_RUNNING, parked=FULL_HINT, incoming=news)
    assert isinstance(decision, Coalesce)
    assert decision.hint.body == body


# --- bursts ---------------------------------------------------------------------------------------

SOURCES = st.sampled_from(["ci", "forge", "mail", "chat"])
BODIES = st.none() | st.integers() | st.text(max_size=5)


class Parking:
    """The hints parked for one busy agent, one row per source."""

    def __init__(self) -> None:
        self.rows: dict[str, WakeHint] = {}
        self.ignored = 0

    def receive(self, hint: WakeHint) -> None:
        decision = decide_wake(
            AgentStatus.AWAKE_RUNNING,
            busy=True,
            parked=self.rows.get(hint.source_key),
            parked_count=len(self.rows),
            incoming=hint,
        )
        match decision:
            case Park(hint=kept) | Coalesce(hint=kept):
                self.rows[kept.source_key] = kept
            case IgnoreHint():
                self.ignored += 1
            case TriggerNow():
                pytest.fail("a busy agent was woken")


@pytest.mark.requirement("wake:every-source-keeps-its-body")
@given(st.lists(st.tuples(SOURCES, BODIES), max_size=60))
def test_after_any_burst_every_source_still_has_its_last_body(
    burst: list[tuple[str, JsonValue]],
) -> None:
    parking = Parking()
    last_body: dict[str, JsonValue] = {}
    for source, body in burst:
        parking.receive(vary(HINT, source_key=source, body=body))
        if body is not None or source not in last_body:
            last_body[source] = body
    assert {source: row.body for source, row in parking.rows.items()} == last_body
    assert sum(row.revision for row in parking.rows.values()) == len(burst)
    assert parking.ignored == 0


@pytest.mark.requirement("wake:burst-is-bounded")
@given(st.lists(st.integers(0, 3 * WAKE_HINT_SOURCES_COUNT_MAX), min_size=80, max_size=300))
def test_a_flood_of_sources_is_bounded_and_displaces_nobody(sources: list[int]) -> None:
    parking = Parking()
    for number, source in enumerate(sources):
        parking.receive(vary(HINT, source_key=f"source_{source}", body=number))
    first_come = list(dict.fromkeys(sources))[:WAKE_HINT_SOURCES_COUNT_MAX]
    last_number = {source: number for number, source in enumerate(sources)}
    assert {key: row.body for key, row in parking.rows.items()} == {
        f"source_{source}": last_number[source] for source in first_come
    }


def taken(hint: WakeHint, snapshot: AgentSnapshot) -> tuple[WakeDisposition, Commit]:
    disposition, commit = take_hint("hint:r1", snapshot, hint)
    assert isinstance(commit, Commit)
    return disposition, commit


def test_a_hint_for_a_free_agent_is_parked_whatever_else_is_parked() -> None:
    idle = AgentSnapshot(agent=agent_in(AgentStatus.ASLEEP), hints=(vary(HINT, source_key="x"),))
    disposition, commit = taken(HINT, idle)
    assert disposition is WakeDisposition.TRIGGERED
    assert commit.changes == (ParkWakeHint(hint=HINT),)
    assert commit.expects == (AgentAdmits(agent_id=HINT.agent_id),)


def test_a_repeat_replaces_the_hint_it_was_folded_with_and_no_other() -> None:
    seen = AgentSnapshot(agent=agent_in(AgentStatus.AWAKE_RUNNING), hints=(HINT,))
    disposition, commit = taken(REPEAT, seen)
    assert disposition is WakeDisposition.COALESCED
    unmoved = WakeHintAtRevision(
        agent_id=HINT.agent_id, source_key=HINT.source_key, revision=HINT.revision
    )
    assert unmoved in commit.expects
    busy = AgentSnapshot(agent=agent_in(AgentStatus.ASLEEP), heads=(HEAD,))
    assert taken(HINT, busy)[0] is WakeDisposition.PARKED


def test_what_is_ignored_without_a_way_out_leaves_a_line_in_the_log() -> None:
    crowd = tuple(vary(HINT, source_key=str(n)) for n in range(WAKE_HINT_SOURCES_COUNT_MAX))
    seen = AgentSnapshot(agent=agent_in(AgentStatus.ASLEEP), hints=crowd)
    disposition, commit = taken(HINT, seen)
    assert disposition is WakeDisposition.IGNORED
    assert [type(change) for change in commit.changes] == [RecordEvent]


def test_a_hint_for_a_stopped_agent_is_refused() -> None:
    seen = AgentSnapshot(agent=agent_in(AgentStatus.STOPPED))
    disposition, refusal = take_hint("hint:r1", seen, HINT)
    assert disposition is WakeDisposition.IGNORED
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.AGENT_STOPPED
