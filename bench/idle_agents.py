"""What an agent weighs that has worked and sleeps.

Owns:  the memory of a real `holon serve` before and after agents each answered once. Warm-up comes
       first, so that what grows with the first turns of a process is not counted as agents.
"""

import asyncio
from typing import Final

from bench.hosting import TEXT, temporary_home
from bench.measure import Measurement
from bench.prompt_load import Ends, create, followed
from bench.served import Served, served

SPEAKERS_COUNT: Final = 8
WARM_UP_COUNT: Final = 300
AGENTS_COUNT: Final = 1_000
AGENT_KB_MAX: Final = 20


async def run() -> list[Measurement]:
    """Weigh, let agents work, and weigh again."""
    with temporary_home() as home, served(home) as service:
        async with followed(service) as ends:
            await _work_once(service, ends, range(WARM_UP_COUNT))
            before_kb = service.rss_kb()
            await _work_once(service, ends, range(WARM_UP_COUNT, WARM_UP_COUNT + AGENTS_COUNT))
            grown_kb = service.rss_kb() - before_kb
    return [
        Measurement(
            name=f"memory each of {AGENTS_COUNT:,} agents adds that worked once and sleep",
            measured=grown_kb / AGENTS_COUNT,
            target=AGENT_KB_MAX,
            unit=" kB",
            detail=f"{before_kb / 1_000:.0f} MB before, {grown_kb / 1_000:+.1f} MB",
        )
    ]


async def _work_once(service: Served, ends: Ends, numbers: range) -> None:
    """Have each agent made and spoken to, and wait until it has answered."""

    async def speak(share: range) -> None:
        await create(service, share)
        async with service.line() as line:
            for number in share:
                said = await line.post(f"/control/agents/agent-{number}/prompt", {"text": TEXT})
                assert said.status == 200, said
                await ends.wait(said.value["message_id"])

    await asyncio.gather(*(speak(numbers[n::SPEAKERS_COUNT]) for n in range(SPEAKERS_COUNT)))
