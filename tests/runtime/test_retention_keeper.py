"""The database stays within its bounds, step by step, while agents work."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec
import pytest

from holon.decide.events.retention import tighter_policy
from holon.decide.work.items import WorkItemEdit
from holon.model.agents import UnseenLetGo, Visibility
from holon.model.commits import AuditedCommit, CommitOutcome, ExpectationFailed
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.limits import (
    DAY_MS,
    HOUR_MS,
    MIB,
    RETENTION_COMMITS_COUNT,
    RETENTION_INTERVAL_MS,
    UNSEEN_FULL_COUNT_MAX,
)
from holon.model.queue import MessageKind
from holon.model.values import AgentId
from holon.model.work import PlanStatus
from holon.ports.agents import AgentHomeError, NoHomes
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import (
    active_waits,
    answer_of,
    kept_items,
    kept_log,
    kept_messages,
    kept_timers,
    kept_turns,
    open_turns,
    reads_of,
    unseen_messages,
)
from tests.support.builders import MAIN, an_identity
from tests.support.fault_store import DiskFault
from tests.support.manual_clock import DAWN

pytestmark = pytest.mark.long

SHORT = RetentionPolicy(
    age_ms=HOUR_MS, events_count_min=5, turns_count_min=2, batch_count=3, bytes_max=10**12
)


def _turns(house: House) -> int:
    return len(kept_turns(house))


@pytest.mark.requirement("runtime:finished-history-is-bounded")
def test_old_finished_turns_leave_in_small_steps_and_new_ones_stay() -> None:
    async def story(house: House) -> None:
        for number in range(10):
            await house.prompt(f"n {number}")
            await house.rest(1_000)
        assert _turns(house) == 10
        await house.rest(HOUR_MS + RETENTION_INTERVAL_MS)
        assert _turns(house) == 2
        await house.prompt("still here?")
        await house.rest(1_000)
        assert (await house.briefs())[-1].text == "Understood."

    house = run_house(story, setup=Setup(retention=SHORT))
    assert house.deaths == []


def test_unfinished_business_is_never_pruned() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="keep me")
        await house.host.work.edit(
            item.id, WorkItemEdit(), blocked_by="x", recheck_after_ms=20 * HOUR_MS
        )
        await house.host.timers.create(MAIN, after_ms=20 * HOUR_MS)
        await house.prompt("slow")
        await house.rest(5 * HOUR_MS)
        assert len(open_turns(house)) == 1
        assert len(kept_timers(house)) == 1
        assert len(kept_items(house)) == 1
        assert len(active_waits(house)) == 1

    script = [rule("slow", says("done", after_ms=6 * HOUR_MS))]
    run_house(story, script=script, setup=Setup(retention=SHORT))


def test_a_full_disk_puts_pruning_off_and_does_not_end_it() -> None:
    async def story(house: House) -> None:
        for number in range(5):
            await house.prompt(f"n {number}")
            await house.rest(1_000)
        house.disk.fault = DiskFault.FULL
        await house.rest(2 * HOUR_MS)
        assert _turns(house) == 5
        house.disk.fault = DiskFault.NONE
        await house.rest(RETENTION_INTERVAL_MS)
        assert _turns(house) == 2

    run_house(story, setup=Setup(retention=SHORT))


def test_a_burst_of_commits_makes_it_look_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holon.runtime.events.retention.RETENTION_COMMITS_COUNT", 20)
    assert RETENTION_COMMITS_COUNT > 20

    async def story(house: House) -> None:
        for number in range(12):
            await house.prompt(f"n {number}")
            await house.rest(10)
        assert _turns(house) < 12
        assert house.clock.now() - DAWN < timedelta(milliseconds=RETENTION_INTERVAL_MS)

    run_house(story, setup=Setup(retention=msgspec.structs.replace(SHORT, age_ms=1)))


FULL = RetentionPolicy(
    age_ms=1_000 * HOUR_MS, events_count_min=5, turns_count_min=2, batch_count=50, bytes_max=2 * MIB
)


def _bytes(house: House) -> int:
    return answer_of(reads_of(house).agents.census()).database_bytes


def test_a_database_that_is_nearly_full_is_pruned_at_once() -> None:
    async def story(house: House) -> None:
        for number in range(150):
            await house.prompt(f"n {number} " + "long " * 2_000)
            await house.rest(10)
            assert _bytes(house) <= FULL.bytes_max * 1.05
        assert 2 < _turns(house) < 150, "young as they are, some had to go"
        assert house.clock.now() - DAWN < timedelta(milliseconds=RETENTION_INTERVAL_MS)

    run_house(story, setup=Setup(retention=FULL))


@pytest.mark.requirement("runtime:finished-history-is-bounded")
def test_what_is_kept_of_each_of_many_agents_yields_to_the_cap() -> None:
    """Fifty turns and a thousand events of each would be several times the cap."""
    policy = RetentionPolicy(age_ms=1_000 * HOUR_MS, batch_count=50, bytes_max=2 * MIB)

    async def story(house: House) -> None:
        agents = [AgentId(f"agent-{number}") for number in range(4)]
        for agent in agents:
            await house.host.control.create_agent(an_identity(agent))
        for number in range(25):
            for agent in agents:
                await house.prompt(f"n {number} " + "long " * 2_000, agent=agent)
            await house.rest(10)
        assert _bytes(house) <= policy.bytes_max * 1.05
        kept = Counter(turn.agent_id for turn in kept_turns(house))
        assert all(12 <= count < 25 for count in kept.values()), kept

    run_house(story, setup=Setup(retention=policy))


def test_when_nothing_more_may_go_pruning_waits_for_many_commits() -> None:
    passes: list[bool] = []

    async def story(house: House) -> None:
        prune = house.disk.prune

        async def counted(policy: RetentionPolicy, *, now: datetime) -> PruneReport:
            report = await prune(policy, now=now)
            passes.append(report.more)
            return report

        house.disk.prune = counted  # type: ignore[method-assign]  # only to count
        for number in range(30):
            await house.prompt(f"n {number}")
            await house.rest(10)

    run_house(story, setup=Setup(retention=msgspec.structs.replace(FULL, bytes_max=4_096)))
    # One pass as the policy says, then one for each step by which less is kept of an agent.
    assert passes.count(False) == 1 + len(list(_tightenings(FULL)))


def _tightenings(policy: RetentionPolicy) -> Iterator[RetentionPolicy]:
    while tighter := tighter_policy(policy):
        policy = tighter
        yield policy


async def _only_its_operator_matters(house: House, agent: AgentId = MAIN) -> None:
    """Have the agent wait for its operator: what others send starts no turn."""
    item = await house.host.work.create(agent, objective="keep me")
    await house.rest(1_000)
    await house.host.work.focus(item.id)
    await house.host.work.edit(item.id, WorkItemEdit(plan_status=PlanStatus.NEEDS_INPUT))
    await house.rest(1_000)


async def _let_go(house: House) -> list[UnseenLetGo]:
    return [event for event in await house.events() if isinstance(event, UnseenLetGo)]


def _unseen(house: House) -> list[str]:
    return [message.id for message in unseen_messages(house)]


def test_of_what_an_agent_does_not_get_to_see_the_newest_is_kept_and_the_rest_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.runtime.events.retention.UNSEEN_PER_AGENT_COUNT_MAX", 5)

    async def story(house: House) -> None:
        await _only_its_operator_matters(house)
        sent = [await house.webhook(f"gate {number} is open") for number in range(12)]
        await house.rest(1_000)
        assert _unseen(house) == sent
        await house.rest(RETENTION_INTERVAL_MS)
        assert _unseen(house) == sent[-5:]
        told = await _let_go(house)
        assert sum(event.message_count for event in told) == 7
        assert told[0].first_message_id == sent[0]
        assert told[-1].last_message_id == sent[6]
        from_outside = kept_messages(house, kind=MessageKind.WEBHOOK_EVENT)
        assert len(from_outside) == 12, "young as they are, they stay as history"
        await house.prompt("anything new?")
        await house.rest(1_000)
        assert not house.model.heard("gate 6 is open")
        assert house.model.heard("gate 7 is open")
        assert _unseen(house) == []

    run_house(story, setup=Setup(retention=SHORT))


def test_whoever_writes_to_an_agent_that_does_not_listen_cannot_fill_the_disk() -> None:
    async def story(house: House) -> None:
        await _only_its_operator_matters(house)
        for number in range(200):
            sent = await house.webhook(f"n {number} " + "x" * 30_000)
            await house.rest(100)
        await house.rest(RETENTION_INTERVAL_MS)
        assert _bytes(house) <= FULL.bytes_max * 1.05
        unseen = _unseen(house)
        assert len(unseen) >= UNSEEN_FULL_COUNT_MAX
        assert unseen[-1] == sent
        assert (await _let_go(house))[-1].message_count > 0

    run_house(story, setup=Setup(retention=FULL))


def test_every_agent_that_does_not_listen_keeps_its_newest_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.runtime.events.retention.UNSEEN_PER_AGENT_COUNT_MAX", 2)
    others = (AgentId("bob"), AgentId("cleo"))

    async def story(house: House) -> None:
        for agent in others:
            await house.host.control.create_agent(an_identity(agent))
            await _only_its_operator_matters(house, agent)
        sent = [await house.webhook(f"n {n}", agent=agent) for agent in others for n in range(4)]
        await house.rest(RETENTION_INTERVAL_MS)
        assert _unseen(house) == [*sent[2:4], *sent[6:]]

    run_house(story, setup=Setup(retention=SHORT))


def test_a_full_disk_puts_letting_go_off_and_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.runtime.events.retention.UNSEEN_PER_AGENT_COUNT_MAX", 2)

    async def story(house: House) -> None:
        await _only_its_operator_matters(house)
        sent = [await house.webhook(f"n {number}") for number in range(4)]
        await house.rest(1_000)
        house.disk.fault = DiskFault.FULL
        await house.rest(RETENTION_INTERVAL_MS)
        assert (_unseen(house), house.deaths) == (sent, [])
        house.disk.fault = DiskFault.NONE
        await house.rest(RETENTION_INTERVAL_MS)
        assert _unseen(house) == sent[2:]

    run_house(story, setup=Setup(retention=SHORT))


def test_what_a_turn_may_have_shown_meanwhile_is_left_to_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.runtime.events.retention.UNSEEN_PER_AGENT_COUNT_MAX", 2)
    refused: list[str] = []

    async def story(house: House) -> None:
        apply = house.disk.apply

        async def late(commit: AuditedCommit) -> CommitOutcome:
            if not commit.commit_id.startswith("unseen:") or len(refused) > 1:
                return await apply(commit)
            refused.append(commit.commit_id)
            return ExpectationFailed(expect=commit.expects[0], found="a later one")

        await _only_its_operator_matters(house)
        sent = [await house.webhook(f"n {number}") for number in range(4)]
        await house.rest(1_000)
        house.disk.apply = late  # type: ignore[method-assign]  # a turn began just before
        await house.rest(RETENTION_INTERVAL_MS)
        assert (_unseen(house), len(refused)) == (sent, 1)
        await house.rest(2 * RETENTION_INTERVAL_MS)
        assert _unseen(house) == sent[2:]

    run_house(story, setup=Setup(retention=SHORT))


class ListedHomes(NoHomes):
    """Homes that are names only."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.fails = False

    async def temporary(self) -> list[AgentId]:
        """Name those there are."""
        return [AgentId(name) for name in self.names]

    async def remove(self, agent_id: AgentId) -> None:
        """Cross one off."""
        if self.fails:
            raise AgentHomeError("the disk is gone")
        self.names.remove(agent_id)


@pytest.mark.requirement("run-homes:removed-with-their-rows")
@pytest.mark.requirement("run-homes:nothing-else")
def test_the_home_of_a_past_run_goes_with_its_last_row_and_no_other_home_does() -> None:
    names = ("tmp_run_past", "tmp_run_busy", "tmp_run_named", "tmp_run_stranger", "tmp_run_young")
    homes = ListedHomes(*names)
    past, busy, named, _, young = map(AgentId, names)

    async def story(house: House) -> None:
        for agent_id in (past, busy, young):
            identity = msgspec.structs.replace(an_identity(agent_id), visibility=Visibility.PRIVATE)
            await house.host.control.create_agent(identity)
        await house.host.control.create_agent(an_identity(named))
        for agent_id in (past, busy, named):
            await house.prompt("hello", agent=agent_id)
        await house.rest(1_000)
        for agent_id in (past, named):
            assert await house.host.control.archive(agent_id, reason="over")
        await house.rest(RETENTION_INTERVAL_MS + 1_000)
        assert homes.names == list(names), "the rows are still there"
        homes.fails = True
        await house.rest(HOUR_MS + RETENTION_INTERVAL_MS)
        assert kept_turns(house, past) == []
        assert homes.names == list(names)
        await house.prompt("hello", agent=young)
        await house.rest(1_000)
        assert await house.host.control.archive(young, reason="over")
        homes.fails = False
        await house.rest(RETENTION_INTERVAL_MS)
        assert homes.names == [busy, named, "tmp_run_stranger", young]
        await house.rest(HOUR_MS + RETENTION_INTERVAL_MS)
        assert homes.names == [busy, named, "tmp_run_stranger"]

    run_house(story, setup=Setup(retention=SHORT, homes=homes))


YEARS_MS = 3_650 * DAY_MS


@pytest.mark.requirement("clock:nothing-is-forgotten-on-a-clock-that-jumped")
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_clock_that_is_set_ahead_for_some_hours_makes_nothing_be_forgotten(
    is_restarted: bool,
) -> None:
    async def story(house: House) -> None:
        first = await house.prompt("hello", key="k")
        for number in range(9):
            await house.prompt(f"n {number}")
            await house.rest(3 * HOUR_MS)
        turn_count, event_count = _turns(house), len(kept_log(house))
        house.clock.jump(YEARS_MS)
        for _ in range(2):
            await house.rest(2 * HOUR_MS)
            await house.prompt("under another clock")
            if is_restarted:
                await house.restart()
        assert _turns(house) >= turn_count
        assert await house.prompt("hello", key="k") == first, "the key is remembered"
        house.clock.jump(-YEARS_MS)
        await house.rest(2 * HOUR_MS)
        assert _turns(house) >= turn_count
        assert len(kept_log(house)) >= event_count

    kept = msgspec.structs.replace(SHORT, age_ms=40 * DAY_MS)
    run_house(story, setup=Setup(retention=kept))


@pytest.mark.requirement("clock:what-is-old-goes-in-the-end")
@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_is_old_after_a_long_sleep_goes_once_the_clock_has_stood(is_restarted: bool) -> None:
    async def story(house: House) -> None:
        for number in range(10):
            await house.prompt(f"n {number}")
            await house.rest(1_000)
        house.clock.jump(60 * DAY_MS)  # what the wall does when a machine wakes up
        if is_restarted:
            await house.restart()
        await house.rest(12 * HOUR_MS)
        assert _turns(house) == 10
        await house.rest(2 * DAY_MS)
        assert _turns(house) == 2

    kept = msgspec.structs.replace(SHORT, age_ms=40 * DAY_MS)
    run_house(story, setup=Setup(retention=kept))


def test_a_clock_that_is_set_back_does_not_stop_retention() -> None:
    async def story(house: House) -> None:
        house.clock.jump(-YEARS_MS)
        for number in range(10):
            await house.prompt(f"n {number}")
            await house.rest(1_000)
        await house.rest(HOUR_MS + RETENTION_INTERVAL_MS)
        assert _turns(house) == 2

    run_house(story, setup=Setup(retention=SHORT))
