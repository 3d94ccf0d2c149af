"""From the delivery at an agent's address to the question on the wire to its model.

Owns:  one sleeping agent after another, among ten thousand, woken through HTTP. The moment of the
       delivery is taken before it is sent, that of the question when the model's server has it
       whole; both by the clock of the machine.
"""

import asyncio
import json
import time
from typing import Final

from bench.hosting import temporary_home
from bench.http_line import HttpLine
from bench.measure import Measurement, median
from bench.served import Served, served
from bench.sleepers import make_home

AGENTS_COUNT: Final = 10_000
WARM_UP_COUNT: Final = 5
WAKES_COUNT: Final = 60
MEDIAN_MS_MAX: Final = 15
_LOOK_S: Final = 0.02  # between two looks at whether the model was asked


async def run() -> list[Measurement]:
    """Wake agents, and compare the moments."""
    with temporary_home() as home:
        make_home(home, agents_count=AGENTS_COUNT)
        with served(home) as service:
            waits_ms = await wakes(service)
    counted = sorted(waits_ms[WARM_UP_COUNT:])
    return [
        Measurement(
            name=f"a delivery to a sleeping agent, one of {AGENTS_COUNT:,}, to the model's wire",
            measured=median(counted),
            target=MEDIAN_MS_MAX,
            unit=" ms",
            detail=f"the fastest {counted[0]:.1f} ms, one in ten over"
            f" {counted[9 * len(counted) // 10]:.1f} ms",
        )
    ]


async def wakes(service: Served) -> list[float]:
    """Return how long each wake took, in milliseconds."""
    waits_ms: list[float] = []
    step = AGENTS_COUNT // (WAKES_COUNT + WARM_UP_COUNT)
    async with service.line() as line, HttpLine(service.model_port) as model:
        for number in range(WAKES_COUNT + WARM_UP_COUNT):
            path = await trigger_path(line, f"agent-{step * number}")
            sent_ns = time.monotonic_ns()
            delivered = await line.post(path, {"what": "changed"})
            assert delivered.status == 200, delivered
            asked_ns = await _asked(model, number)
            waits_ms.append((asked_ns - sent_ns) / 1e6)
            await asyncio.sleep(_LOOK_S)  # its turn ends before the next one begins
    return waits_ms


async def trigger_path(line: HttpLine, agent_id: str) -> str:
    """Return the path that wakes an agent."""
    given = await line.post(f"/control/agents/{agent_id}/external-trigger")
    url: str = given.value["external_trigger"]["trigger_url"]
    return "/" + url.split("/", 3)[3]


async def _asked(model: HttpLine, number: int) -> int:
    """Return when the model had this question whole."""
    while True:
        await asyncio.sleep(_LOOK_S)
        times_ns: list[int] = json.loads((await model.get("/run/times")).body)
        if len(times_ns) > number:
            return times_ns[number]
