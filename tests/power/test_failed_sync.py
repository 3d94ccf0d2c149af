"""A disk that reports a failed sync: from then on the store believes nothing it is told."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.connection import open_writer
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.store import open_store
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from holon.model.commits import Applied, Commit
from holon.model.errors import StoreBrokenError
from holon.model.events.retention import RetentionPolicy
from holon.model.queue import TextBody
from tests.support.builders import a_commit, a_message, an_admission, an_agent, moment
from tests.support.power_drill import judge_run
from tests.support.power_run import DATABASE, Ack, PowerRun, power_vfs
from tests.support.power_vfs import PowerVfs


def admissions(first: int, count: int) -> list[Commit]:
    return [an_admission(a_message(f"msg_{n}")) for n in range(first, first + count)]


def assert_nothing_was_done_after_the_failed_sync(vfs: PowerVfs) -> None:
    (moment_of_failure,) = vfs.failed_syncs  # one, since no other was tried
    assert vfs.log[moment_of_failure:] == []


@pytest.fixture
def disk() -> Iterator[tuple[PowerVfs, Path]]:
    with power_vfs("failing") as found:
        yield found


@pytest.mark.requirement("power:unknown-durability-is-never-acknowledged")
@pytest.mark.parametrize("syncs_left", [0, 1])
def test_a_failed_sync_breaks_the_whole_group_and_everything_after(
    disk: tuple[PowerVfs, Path], syncs_left: int
) -> None:
    vfs, folder = disk
    connection = open_writer(folder / DATABASE, vfs=vfs.name)
    migrate(connection)
    writer = CommitWriter(connection)
    run = PowerRun(log=vfs.log)
    for group in ([a_commit("agent", an_agent())], admissions(0, 5), admissions(5, 1)):
        assert writer.apply_group([audited(each) for each in group]).results == [Applied()] * len(
            group
        )
        run.acks.extend(Ack(len(vfs.log), commit.commit_id) for commit in group)
    vfs.syncs_left = syncs_left
    for number in range(syncs_left):  # what still syncs is still acknowledged
        assert writer.apply_group(
            [audited(each) for each in admissions(50 + number, 1)]
        ).results == [Applied()]
        run.acks.append(Ack(len(vfs.log), f"admit:msg_{50 + number}"))

    broken = writer.apply_group([audited(each) for each in admissions(100, 4)]).results
    vfs.syncs_left = None  # the disk recovers; what happened before stays unknown
    refused = writer.apply_group([audited(each) for each in admissions(200, 2)]).results

    assert [type(result) for result in broken + refused] == [StoreBrokenError] * 6
    connection.close()
    report = judge_run(run, range(60), seed=3, moments=range(run.acks[-1].moment, len(vfs.log) + 1))
    assert report.problems == []


async def test_the_store_tells_every_waiting_caller_and_recovers_on_a_new_start(
    disk: tuple[PowerVfs, Path],
) -> None:
    vfs, home = disk
    store = open_store(home, vfs=vfs.name)
    await store.apply(audited(a_commit("agent", an_agent())))
    await asyncio.gather(*(store.apply(audited(commit)) for commit in admissions(0, 8)))
    vfs.syncs_left = 0

    told = await asyncio.gather(
        *(store.apply(audited(commit)) for commit in admissions(8, 8)), return_exceptions=True
    )
    with pytest.raises(StoreBrokenError):
        await store.apply(audited(admissions(16, 1)[0]))
    vfs.syncs_left = None
    with anyio.fail_after(30):
        await store.close()

    assert [type(answer) for answer in told] == [StoreBrokenError] * 8
    again = open_store(home)
    for number in range(8):
        assert await again.reads.queue.message(a_message(f"msg_{number}").id) is not None
    assert await again.reads.queue.message(a_message("msg_16").id) is None
    await again.close()
    assert check_database(database_path(home)).violations == ()


async def test_a_checkpoint_that_cannot_sync_breaks_the_store(
    disk: tuple[PowerVfs, Path],
) -> None:
    vfs, home = disk
    store = open_store(home, vfs=vfs.name)
    await store.apply(audited(a_commit("agent", an_agent())))
    bulky = "x" * 500_000
    for number in range(8):
        await store.apply(
            audited(an_admission(a_message(f"msg_{number}", body=TextBody(text=bulky))))
        )
    vfs.syncs_left = 1  # the commit's own sync; the checkpoint after it gets none
    await store.apply(audited(an_admission(a_message("msg_8", body=TextBody(text=bulky)))))

    with pytest.raises(StoreBrokenError):
        await store.apply(audited(an_admission(a_message("msg_9"))))
    vfs.syncs_left = None
    await store.close()
    assert_nothing_was_done_after_the_failed_sync(vfs)
    again = open_store(home)
    assert await again.reads.queue.message(a_message("msg_8").id) is not None
    await again.close()


EAGER = RetentionPolicy(age_ms=1, bytes_max=1, events_count_min=1)


@pytest.mark.requirement("power:unknown-durability-is-never-acknowledged")
async def test_after_a_failed_sync_neither_a_waiting_job_nor_closing_touches_the_disk(
    disk: tuple[PowerVfs, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    vfs, home = disk
    store = open_store(home, vfs=vfs.name)
    await store.apply(audited(a_commit("agent", an_agent())))
    for commit in admissions(0, 5):
        await store.apply(audited(commit))
    assert (
        await store.reads.queue.message(a_message("msg_0").id) is not None
    )  # the reader has the log
    monkeypatch.setattr(
        "holon.adapters.sqlite.database.checkpoints.CHECKPOINT_PAGES", 1
    )  # one is due
    vfs.syncs_left = 0

    told = await asyncio.gather(
        store.apply(audited(admissions(5, 1)[0])),
        store.prune(EAGER, now=moment(10**10)),  # waits for the group that fails
        return_exceptions=True,
    )
    vfs.syncs_left = None
    with pytest.raises(StoreBrokenError):
        await store.prune(EAGER, now=moment(10**10))
    await store.close()

    assert [type(answer) for answer in told] == [StoreBrokenError] * 2
    assert_nothing_was_done_after_the_failed_sync(vfs)
    assert sorted(path.name for path in (home / "state").iterdir()) == [
        "runtime.sqlite",
        "runtime.sqlite-shm",
        "runtime.sqlite-wal",
    ]


async def test_a_failed_sync_while_closing_is_the_last_thing_asked_of_the_disk(
    disk: tuple[PowerVfs, Path],
) -> None:
    vfs, home = disk
    store = open_store(home, vfs=vfs.name)
    await store.apply(audited(a_commit("agent", an_agent())))
    await store.apply(audited(admissions(0, 1)[0]))
    vfs.syncs_left = 0
    await store.close()

    assert_nothing_was_done_after_the_failed_sync(vfs)
    again = open_store(home)
    assert await again.reads.queue.message(a_message("msg_0").id) is not None
    await again.close()
