"""Record a runtime at work on a logging disk, so that power cuts can be simulated afterwards.

Owns:  the recording: a real host on a real store over a PowerVfs, through the creation of a home,
       messages, turns, tools, timers, work, retention, checkpoints, an orderly end and a restart.
Rule 1: a commit counts as acknowledged when its group returned, before its caller is resumed.
Rule 2: everything follows from the seed.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeVar

import anyio
import apsw

from holon.adapters.sqlite.database.checkpoints import Checkpoints
from holon.adapters.sqlite.database.connection import Synchronous, open_reader, open_writer
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.retention import Retention
from holon.adapters.sqlite.store import SqliteStore
from holon.adapters.sqlite.writer.commit_writer import Result
from holon.model.commits import Applied, AuditedCommit
from holon.model.errors import RefusedError
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, KIB
from holon.runtime.host import Host
from tests.support.builders import an_identity
from tests.support.database_oracle import commit_names
from tests.support.hosts import a_host
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.power_vfs import DiskOperation, PowerVfs
from tests.support.sequential_ids import SequentialIds
from tests.support.sim_loop import SimLoop, SimulatedCrash
from tests.support.single_model import SingleModel
from tests.support.world_actors import TRIGGER_BASE_URL, Actors, Notebook, WorldTriggerKey
from tests.support.world_model import WorldModel
from tests.support.world_plan import AGENTS, JumpClock, plan_world

T = TypeVar("T")

DATABASE: Final = "runtime.sqlite"
LIVES_COUNT: Final = 3
ACTIONS_COUNT: Final = 9  # per life
SPAN_MS: Final = 120_000  # per life
_PASSIVE_EVERY: Final = 7  # groups between two checkpoints: sooner than in production, so that
_TRUNCATE_EVERY: Final = 31  # a short run has many
_SPARSE: Final = RetentionPolicy(
    age_ms=DAY_MS, bytes_max=64 * KIB, events_count_min=5, turns_count_min=1, batch_count=8
)


class Ack(NamedTuple):
    """A commit that was reported durable when the log had this length."""

    moment: int
    commit_id: str


class Forgotten(NamedTuple):
    """Commits retention removed; it began when the log had this length."""

    moment: int
    commit_ids: frozenset[str]


@dataclass(slots=True)
class PowerRun:
    """What was asked of the disk, and what was promised on the way."""

    log: list[DiskOperation]
    acks: list[Ack] = field(default_factory=list)
    forgotten: list[Forgotten] = field(default_factory=list)

    def owed(self, moment: int) -> set[str]:
        """The commits that must be there when the power goes at this moment."""
        owed = {ack.commit_id for ack in self.acks if ack.moment <= moment}
        for gone in self.forgotten:
            if gone.moment <= moment:
                owed -= gone.commit_ids
        return owed


class _PowerWriter(InlineWriter):
    """Notes every acknowledgement, and takes checkpoints as the writer thread does."""

    def __init__(self, connection: apsw.Connection, clock: ManualClock, run: PowerRun) -> None:
        super().__init__(connection, clock, NoFaults())
        self._connection = connection
        self._checkpoints = Checkpoints(connection)
        self._run = run
        self._group_count = 0
        self.on_group = self._note_group

    def _note_group(self, commits: list[AuditedCommit], results: list[Result]) -> None:
        moment = len(self._run.log)
        for commit, result in zip(commits, results, strict=True):
            if isinstance(result, Applied):
                self._run.acks.append(Ack(moment, commit.commit_id))
        self._group_count += 1
        if self._group_count % _TRUNCATE_EVERY == 0:
            self._checkpoints.truncate()
        elif self._group_count % _PASSIVE_EVERY == 0:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    async def run(self, job: Callable[[], T]) -> T:
        moment, before = len(self._run.log), self._remembered()
        returned = job()
        if gone := before - self._remembered():
            self._run.forgotten.append(Forgotten(moment, frozenset(gone)))
        return returned

    def _remembered(self) -> set[str]:
        return commit_names(self._connection)

    async def close(self) -> None:
        self._checkpoints.truncate()
        self._connection.close()


@contextmanager
def power_vfs(name: str) -> Iterator[tuple[PowerVfs, Path]]:
    """Yield a disk and an empty directory on it; both are gone afterwards."""
    shm = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="holon-power-", dir=shm if shm.is_dir() else None))
    vfs = PowerVfs(name)
    try:
        yield vfs, folder
    finally:
        vfs.unregister()
        shutil.rmtree(folder)


def record_run(seed: int, *, synchronous: Synchronous = Synchronous.FULL) -> PowerRun:
    """Let a host work on a fresh home and return what it did to the disk."""
    with power_vfs(f"power-{seed}-{synchronous}") as (vfs, folder):
        recording = _Recording(seed, PowerRun(log=vfs.log), folder / DATABASE, vfs.name)
        for number in range(LIVES_COUNT):
            recording.live(number, synchronous)
    return recording.run


class _Recording:
    """One home through several lives."""

    def __init__(self, seed: int, run: PowerRun, path: Path, vfs: str) -> None:
        self.run = run
        self._path = path
        self._vfs = vfs
        self._chance = Random(f"{seed}:power")
        self._clock = ManualClock()
        self._ids = SequentialIds()
        self._notebook = Notebook()
        self._model = WorldModel(self._clock, self._chance, follow_up_count_max=4)
        self._plan = plan_world(
            self._chance, action_count=ACTIONS_COUNT * LIVES_COUNT, span_ms=SPAN_MS * LIVES_COUNT
        )

    def live(self, number: int, synchronous: Synchronous) -> None:
        """Start, work, be killed, let days pass, prune and close."""
        writer = open_writer(self._path, synchronous=synchronous, vfs=self._vfs)
        migrate(writer)
        reader = open_reader(self._path, vfs=self._vfs)
        store = SqliteStore(
            writer=_PowerWriter(writer, self._clock, self.run),
            retention=Retention(writer),
            reader=reader,
        )
        loop = SimLoop(self._clock, self._chance)
        with contextlib.suppress(SimulatedCrash):
            loop.run_life(self._work(store, number, loop))
        self._clock.advance(3 * DAY_MS)
        SimLoop(self._clock, self._chance).run_life(self._tidy_and_close(store))
        reader.close()

    async def _work(self, store: SqliteStore, number: int, loop: SimLoop) -> None:
        host = a_host(
            store=store,
            clock=self._clock,
            ids=self._ids,
            models=SingleModel(self._model),
            trigger_key=WorldTriggerKey(),
            trigger_base_url=TRIGGER_BASE_URL,
        )
        async with anyio.create_task_group() as life:
            life.start_soon(host.run)
            await host.wait_ready()
            await self._create_agents(host)
            await self._act_out(host, number)
            loop.crash_at_step = 0  # the next step is the last

    async def _create_agents(self, host: Host) -> None:
        for agent in AGENTS:
            try:
                await host.control.create_agent(an_identity(agent))
            except RefusedError:
                continue  # an earlier life made it

    async def _act_out(self, host: Host, life: int) -> None:
        began = self._clock.now() - timedelta(milliseconds=life * SPAN_MS)
        actors = Actors(host, self._clock, self._notebook)
        async with anyio.create_task_group() as acting:
            for number, planned in enumerate(self._plan):
                if planned.at_ms // SPAN_MS != life or isinstance(planned.action, JumpClock):
                    continue
                await self._clock.sleep_until(began + timedelta(milliseconds=planned.at_ms))
                acting.start_soon(actors.perform, number, planned.action)

    async def _tidy_and_close(self, store: SqliteStore) -> None:
        while (await store.prune(_SPARSE, now=self._clock.now())).more:
            pass
        await store.close()
