"""Whether retention keeps the database within its cap while work goes on.

Owns:  a sustained load of turns on a real host with a small cap, and the largest size seen from the
       moment the cap was first reached. Age keeps nothing from staying, so that bytes alone decide.
"""

import asyncio
from typing import Final

from bench.hosting import BenchHost, PromptModel, prompt, running_host, temporary_home
from bench.measure import Measurement
from bench.sleepers import make_home
from holon.adapters.sqlite.database.home_lock import database_path
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, MIB

CAP_BYTES: Final = 24 * MIB
OVERSHOOT_MAX: Final = 1.05
AGENTS_COUNT: Final = 16
TURNS_COUNT: Final = 3_200  # several times what the cap holds
TEXT: Final = "What an agent is told can be long. " * 120
POLICY: Final = RetentionPolicy(
    age_ms=365 * DAY_MS, bytes_max=CAP_BYTES, events_count_min=10, turns_count_min=2
)


class _Scale:
    """Weighs the database again and again: its file, and what the log adds to it."""

    def __init__(self, bench: BenchHost) -> None:
        self._bench = bench
        self._path = database_path(bench.home)
        self.sizes: list[int] = []

    async def weigh(self) -> None:
        """Note the size now."""
        with_log = await self._bench.store.reads.events.used_bytes()
        self.sizes.append(max(with_log, self._path.stat().st_size))


async def run() -> list[Measurement]:
    """Work on, and watch the size."""
    with temporary_home() as home:
        make_home(home, agents_count=AGENTS_COUNT)
        model = PromptModel(uses_tool=True)
        async with running_host(home, model=model, retention=POLICY) as bench:
            scale = _Scale(bench)
            await asyncio.gather(*(_work(bench, number, scale) for number in range(AGENTS_COUNT)))
    reached = next((at for at, size in enumerate(scale.sizes) if size >= CAP_BYTES * 0.95), None)
    assert reached is not None, "the load never filled the database"
    largest = max(scale.sizes[reached:])
    return [
        Measurement(
            name=f"largest size of the database under load, of its cap of {CAP_BYTES // MIB} MiB",
            measured=largest / CAP_BYTES,
            target=OVERSHOOT_MAX,
            detail=f"cap reached after {reached:,} of {len(scale.sizes):,} turns",
        )
    ]


async def _work(bench: BenchHost, number: int, scale: _Scale) -> None:
    for _ in range(TURNS_COUNT // AGENTS_COUNT):
        await bench.settle(prompt(f"agent-{number}", text=TEXT))
        await scale.weigh()
