"""What was written while a clock was set wrong is as old as the log says."""

from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest

from holon.decide.queue.idempotency import keyed_id, keyed_request
from holon.model.commits import CreateTask, CreateTrigger, DeliverTrigger, SetModelOverride
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, IDEMPOTENCY_KEPT_MS_MIN
from holon.model.tasks import TaskStatus
from holon.model.values import IdPrefix, to_micros
from holon.model.wake import WakeDisposition
from tests.adapters.sqlite.history_rows import LATER, History
from tests.support.builders import MAIN, a_hint, a_task, a_trigger

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
KEYS_KEPT = timedelta(milliseconds=IDEMPOTENCY_KEPT_MS_MIN)
FAR_BACK = LATER - 100 * DAY - 12 * HOUR
AT_THE_BEGINNING = LATER - 20_000 * DAY  # where a machine without a battery starts
BY_AGE = RetentionPolicy(age_ms=90 * DAY_MS, events_count_min=3, turns_count_min=2, batch_count=50)
FULL = msgspec.structs.replace(BY_AGE, bytes_max=1)

pytestmark = pytest.mark.requirement("clock:the-log-says-how-old-something-is")
nothing_forgotten = pytest.mark.requirement("clock:nothing-is-forgotten-on-a-clock-that-jumped")
old_goes = pytest.mark.requirement("clock:what-is-old-goes-in-the-end")


class Lived(History):
    """A database that was written to under one clock after the other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.turns_count = 0

    def live(self, count: int, *, at: datetime, keyed: bool = False) -> None:
        """Add turns that begin at a moment and follow each other by a second."""
        for number in range(count):
            self.turns_count += 1
            n = self.turns_count
            key = f"k{n}" if keyed else None
            self.add_turn(n, at=at + number * timedelta(seconds=1), key=key)

    def turns(self) -> list[int]:
        rows = self.connection.execute("select turn_index from turns order by 1").fetchall()
        return [int(str(n)) for (n,) in rows]


@pytest.fixture
def lived(tmp_path: Path) -> Lived:
    return Lived(tmp_path / "test.sqlite")


@nothing_forgotten
def test_a_clock_that_stood_in_the_past_makes_nothing_before_it_old(lived: Lived) -> None:
    lived.live(10, at=LATER - HOUR)
    lived.live(1, at=FAR_BACK)
    lived.live(10, at=LATER - HOUR / 2)
    events_count = lived.count("events")
    lived.prune(BY_AGE)
    assert lived.turns() == [*range(1, 22)]
    assert lived.count("messages") == 21
    assert lived.count("events") == events_count - 1, "only the birth is old"


@nothing_forgotten
def test_a_task_that_ended_while_the_clock_stood_in_the_past_is_young(lived: Lived) -> None:
    lived.live(3, at=LATER - HOUR)
    ended = msgspec.structs.replace(
        a_task(status=TaskStatus.COMPLETED), created_at=FAR_BACK, updated_at=FAR_BACK
    )
    lived.make("task", CreateTask(task=ended), at=FAR_BACK)
    lived.live(1, at=LATER)
    for now in (LATER, LATER + 80 * DAY):
        lived.prune(BY_AGE, now=now)
        assert lived.count("tasks") == 1, now
    lived.live(3, at=LATER + 95 * DAY)
    lived.prune(BY_AGE, now=LATER + 95 * DAY)
    assert lived.count("tasks") == 0, "it goes with what was written around it"


@nothing_forgotten
@pytest.mark.parametrize("back", [timedelta(seconds=90), 8 * HOUR, 100 * DAY], ids=str)
@pytest.mark.parametrize("policy", [BY_AGE, FULL], ids=["by age", "above the cap"])
def test_a_present_that_is_itself_behind_forgets_no_key(
    lived: Lived, policy: RetentionPolicy, back: timedelta
) -> None:
    lived.live(10, at=LATER, keyed=True)
    lived.live(1, at=FAR_BACK, keyed=True)
    lived.live(5, at=LATER - back, keyed=True)
    lived.prune(policy, now=LATER - back + timedelta(minutes=1))
    assert lived.count("messages where idempotency_key is not null") == 16


@old_goes
def test_a_moment_in_the_distant_past_stops_nothing(lived: Lived) -> None:
    lived.live(10, at=LATER - 120 * DAY)
    lived.live(2, at=AT_THE_BEGINNING)
    lived.live(10, at=LATER - 100 * DAY)
    lived.live(2, at=AT_THE_BEGINNING + HOUR)
    lived.live(10, at=LATER - 10 * DAY)
    lived.prune(BY_AGE)
    assert lived.turns() == [*range(23, 35)], "the second two belong to the last ten"
    assert lived.connection.execute("select min(created_at) from events").fetchall() == [
        (to_micros(AT_THE_BEGINNING + HOUR),)
    ]


@old_goes
def test_a_clock_that_stood_ahead_and_then_in_the_past_stops_nothing(lived: Lived) -> None:
    lived.live(5, at=LATER - 150 * DAY)
    lived.live(5, at=LATER + 3_650 * DAY)
    lived.live(5, at=AT_THE_BEGINNING)
    lived.live(5, at=LATER - 140 * DAY)
    lived.live(5, at=LATER)
    lived.prune(BY_AGE)
    assert lived.turns() == [*range(21, 26)]


@old_goes
@pytest.mark.requirement("runtime:finished-history-is-bounded")
def test_above_the_cap_rows_go_in_the_order_of_the_log(lived: Lived) -> None:
    for at in (LATER, FAR_BACK, LATER + 101 * DAY, AT_THE_BEGINNING, LATER + HOUR):
        lived.live(40, at=at)
    cap = int(str(lived.connection.pragma("page_count"))) * 4096 * 2 // 3
    lived.prune(msgspec.structs.replace(BY_AGE, bytes_max=cap), now=LATER + 2 * HOUR)
    kept = lived.turns()
    assert 2 < len(kept) < 150, "there is room again, and no more went than that takes"
    assert kept == [*range(kept[0], 201)], "the oldest of the log have gone, whatever they say"


@pytest.mark.requirement("runtime:finished-history-is-bounded")
def test_above_the_cap_all_that_may_go_does(lived: Lived) -> None:
    for at in (LATER, FAR_BACK, LATER + 101 * DAY, AT_THE_BEGINNING, LATER - HOUR):
        lived.live(20, at=at)
    lived.prune(FULL)
    assert lived.turns() == [99, 100]
    assert lived.count("events") == BY_AGE.events_count_min


@nothing_forgotten
def test_a_key_of_a_clock_in_the_past_is_remembered_for_a_day(lived: Lived) -> None:
    lived.live(5, at=LATER, keyed=True)
    lived.live(5, at=FAR_BACK, keyed=True)
    lived.live(5, at=LATER + HOUR, keyed=True)
    lived.prune(FULL, now=LATER + 2 * HOUR)
    assert lived.count("messages") == 15
    lived.prune(FULL, now=LATER + 2 * HOUR + KEYS_KEPT)
    assert lived.count("messages") == 2


@nothing_forgotten
def test_what_a_key_gave_its_id_in_the_past_is_remembered_for_a_day(lived: Lived) -> None:
    lived.live(2, at=LATER)
    task = a_task(keyed_id(IdPrefix.TASK, MAIN, "k1"), status=TaskStatus.COMPLETED)
    ended = msgspec.structs.replace(task, created_at=FAR_BACK, updated_at=FAR_BACK)
    lived.make("task", CreateTask(task=ended), at=FAR_BACK)
    lived.live(2, at=LATER + HOUR)
    lived.prune(FULL, now=LATER + 2 * HOUR)
    assert lived.count("tasks") == 1
    lived.prune(FULL, now=LATER + 2 * HOUR + KEYS_KEPT)
    assert lived.count("tasks") == 0


def _delivered(number: int) -> DeliverTrigger:
    return DeliverTrigger(
        hint=a_hint(source_key="trigger:trig_1", revision=number),
        external_trigger_id=a_trigger().external_trigger_id,
        epoch=1,
        disposition=WakeDisposition.TRIGGERED,
        delivery_key=f"{number:064}",
        content_digest="1" * 64,
    )


@nothing_forgotten
def test_commits_and_deliveries_of_a_clock_in_the_past_are_remembered(lived: Lived) -> None:
    request = f"control:{keyed_request(MAIN, 'k', content='')}"
    lived.make("trigger", CreateTrigger(trigger=a_trigger()), at=LATER - 3 * HOUR)
    lived.live(2, at=LATER)
    lived.make(request, SetModelOverride(agent_id=MAIN, model=None), at=FAR_BACK)
    lived.make("deliver:1", _delivered(1), at=FAR_BACK)
    lived.make("deliver:2", _delivered(2), at=LATER + HOUR)
    lived.prune(BY_AGE, now=LATER + HOUR / 2)
    assert lived.count("commits where commit_id like 'deliver:%'") == 2
    lived.prune(BY_AGE, now=LATER + 3 * HOUR)
    lived.prune(BY_AGE, now=LATER + 4 * HOUR)
    assert lived.count("commits where commit_id like 'deliver:%'") == 0
    assert lived.count(f"commits where commit_id = '{request}'") == 1
    assert lived.count("trigger_deliveries") == 2
    lived.prune(BY_AGE, now=LATER + 2 * HOUR + KEYS_KEPT)
    assert lived.count("commits") == 0
    assert lived.count("trigger_deliveries") == 0


def test_a_long_log_is_read_in_pieces_before_anything_goes(
    lived: Lived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.log_segments.READ_COUNT", 10)
    lived.live(10, at=LATER - 120 * DAY)
    lived.live(10, at=LATER)
    lived.live(1, at=FAR_BACK)
    first = lived.retention.step(BY_AGE, now=LATER)
    assert (first.rows_removed, first.more) == (0, True)
    lived.prune(BY_AGE)
    assert lived.turns() == [*range(11, 22)]


OFFSETS = (8 * HOUR, -8 * HOUR, 40 * DAY, 100 * DAY, 3_650 * DAY, -100 * DAY)
WRONG_DAYS_MAX = 12
# What precedes an event and what follows it may both be stamped ahead, and nothing goes while the
# clock is back.
STAYS_AT_MOST = 90 * DAY + 2 * 100 * DAY + 2 * WRONG_DAYS_MAX * DAY


class Diary(Lived):
    """A database that gets a turn each day, whatever the clock says; knows when that was."""

    def __init__(self, path: Path, chance: Random) -> None:
        super().__init__(path)
        self.now = LATER
        self.truth = dict[int, datetime]()
        self._chance = chance
        self._offset = timedelta(0)
        self._stays_days = WRONG_DAYS_MAX

    def next_day(self) -> None:
        """Set the clock wrong or right now and then, and add a turn."""
        self._stays_days -= 1
        if self._stays_days == 0:
            is_right = self._offset == timedelta(0)
            self._offset = self._chance.choice(OFFSETS) if is_right else timedelta(0)
            self._stays_days = self._chance.randrange(3, WRONG_DAYS_MAX)
        self.now += DAY
        self.live(1, at=self.now + self._offset, keyed=True)
        self.truth[self.turns_count] = self.now

    def ages_of_lost(self, policy: RetentionPolicy) -> list[timedelta]:
        """Prune, by a clock that is not believed when it is ahead; how old is what went?"""
        there = set(self.turns())
        self.prune(policy, now=min(self.now, self.now + self._offset))
        return [self.now - self.truth[turn] for turn in there - set(self.turns())]

    def ages_of_lost_keys(self) -> list[timedelta]:
        rows = self.connection.execute("select message_id from messages").fetchall()
        kept = {int(str(message_id).removeprefix("msg_")) for (message_id,) in rows}
        return [self.now - self.truth[turn] for turn in set(self.truth) - kept]


@nothing_forgotten
@old_goes
@pytest.mark.parametrize("seed", [0, 12])
def test_whatever_a_clock_does_for_some_days_the_young_stays_and_the_old_goes(
    tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    diary = Diary(tmp_path / "test.sqlite", chance)
    for number in range(400):
        diary.next_day()
        if number % 4 == 0:
            lost = diary.ages_of_lost(BY_AGE)
            assert all(age >= (90 - WRONG_DAYS_MAX) * DAY for age in lost), lost
            assert all(age <= STAYS_AT_MOST for age in lost), lost
        if chance.random() < 0.01:
            diary.ages_of_lost(FULL)
        keys = diary.ages_of_lost_keys()
        assert all(age >= KEYS_KEPT for age in keys), min(keys)
    assert all(diary.now - diary.truth[turn] <= STAYS_AT_MOST for turn in diary.turns())
