"""What a request for a timer amounts to, and what the end of one takes along."""

import msgspec
import pytest

from holon.decide.wake.timer_requests import (
    ArmedSchedule,
    armed_after,
    armed_cron,
    cancellation_commit,
    creation_of,
    existing_timer,
    new_timer,
)
from holon.model.agents import AgentStatus
from holon.model.commits import CancelTimer, Commit, CreateTimer, MoveWait, SettleMessage
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import (
    LABEL_CHARS_MAX,
    TIMER_DURATION_MS_MAX,
    TIMER_DURATION_MS_MIN,
    TIMER_INTERVAL_MS_MIN,
    TIMERS_ACTIVE_COUNT_MAX,
)
from holon.model.values import MessageId, TimerId, later
from holon.model.wake import Cron, Every, OneShot, TimerRecord, WaitKind, WaitState
from tests.decide.sample_rows import AGENT_ID, NOW, agent_in, wait_of
from tests.support.builders import a_wait

vary = msgspec.structs.replace


def armed(after_ms: int = 60_000, *, every_ms: int | None = None) -> ArmedSchedule:
    found = armed_after(after_ms, every_ms=every_ms, now=NOW)
    assert isinstance(found, ArmedSchedule)
    return found


def a_request(**changed: object) -> TimerRecord:
    made = new_timer(TimerId("timer_1"), AGENT_ID, armed(), summary="tea", now=NOW)
    return vary(made, **changed)


def seen(status: AgentStatus, *, timers: int = 0) -> AgentSnapshot:
    return AgentSnapshot(agent=agent_in(status), active_timer_count=timers)


def test_a_timer_fires_once_or_on_a_grid_from_its_first_slot() -> None:
    assert armed() == ArmedSchedule(schedule=OneShot(), first=later(NOW, by_ms=60_000))
    assert armed(every_ms=5_000).schedule == Every(interval_ms=5_000)


@pytest.mark.parametrize(
    ("after_ms", "every_ms", "field"),
    [
        (TIMER_DURATION_MS_MIN - 1, None, "after_ms"),
        (TIMER_DURATION_MS_MAX + 1, None, "after_ms"),
        (60_000, TIMER_INTERVAL_MS_MIN - 1, "every_ms"),
        (60_000, TIMER_DURATION_MS_MAX + 1, "every_ms"),
    ],
)
def test_a_span_out_of_bounds_is_refused(after_ms: int, every_ms: int | None, field: str) -> None:
    refused = armed_after(after_ms, every_ms=every_ms, now=NOW)
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.field) == (RefusalCode.BAD_DURATION, field)


@pytest.mark.parametrize("expression", ["not cron", "0 0 31 2 *"])
def test_a_cron_expression_that_never_comes_round_is_refused(expression: str) -> None:
    refused = armed_cron(expression, zone="UTC", now=NOW)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.BAD_SCHEDULE


def test_a_long_summary_is_cut_and_an_empty_one_is_none() -> None:
    long = new_timer(TimerId("timer_1"), AGENT_ID, armed(), summary="x" * 5_000, now=NOW)
    assert long.summary is not None
    assert len(long.summary) == LABEL_CHARS_MAX
    assert new_timer(TimerId("timer_1"), AGENT_ID, armed(), summary="", now=NOW).summary is None


def test_a_timer_is_made_once_and_only_for_an_agent_that_takes_input() -> None:
    timer, up = a_request(), seen(AgentStatus.ASLEEP)
    made = creation_of(timer, kept=None, target=up)
    assert isinstance(made, Commit)
    assert made.changes == (CreateTimer(timer=timer),)
    assert creation_of(timer, kept=timer, target=up) is None
    refusals = {
        RefusalCode.AGENT_NOT_FOUND: None,
        RefusalCode.AGENT_STOPPED: seen(AgentStatus.STOPPED),
        RefusalCode.QUOTA_REACHED: seen(AgentStatus.ASLEEP, timers=TIMERS_ACTIVE_COUNT_MAX),
    }
    for code, target in refusals.items():
        refused = creation_of(timer, kept=None, target=target)
        assert isinstance(refused, Refusal)
        assert refused.code is code


def test_a_key_gives_the_timer_it_was_used_for_whenever_it_is_repeated() -> None:
    first, again = a_request(), vary(a_request(), created_at=later(NOW, by_ms=5))
    again = vary(again, anchor_at=later(NOW, by_ms=60_005))
    assert existing_timer(again, first) is first
    assert existing_timer(again, None) is again


@pytest.mark.parametrize(
    "other",
    [
        a_request(summary="coffee"),
        a_request(schedule=Every(interval_ms=5_000)),
        a_request(anchor_at=later(NOW, by_ms=61_000)),
    ],
)
def test_a_key_with_another_timer_is_a_conflict(other: TimerRecord) -> None:
    refused = existing_timer(a_request(), other)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.IDEMPOTENCY_CONFLICT


def test_the_first_slot_of_a_cron_timer_is_not_compared() -> None:
    cron = Cron(expression="0 9 * * *", zone="UTC")
    asked = a_request(schedule=cron)
    kept = vary(asked, anchor_at=later(NOW, by_ms=1))
    assert existing_timer(asked, kept) is kept


def test_cancelling_voids_the_queued_ticks_and_ends_the_rest_that_is_active() -> None:
    active = a_wait("wait_1", kind=WaitKind.TIMER)
    triggered = vary(wait_of(WaitKind.TIMER), state=WaitState.TRIGGERED)
    commit = cancellation_commit(
        "control:r1",
        a_request(),
        queued_ticks=[MessageId("msg_1")],
        waits=[triggered, active],
        now=NOW,
    )
    kinds = [type(change) for change in commit.changes]
    assert kinds == [CancelTimer, SettleMessage, MoveWait]
    assert isinstance(commit.changes[-1], MoveWait)
    assert commit.changes[-1].wait_id == active.id
    assert commit.changes[-1].state is WaitState.CANCELLED
    assert len(commit.expects) == len(commit.changes)
