"""What the runtime adds to a turn, with a short past and with a long one.

Owns:  the comparison: turns of one tool round with a model that answers at once, for an agent with
       100 messages behind it and for one with 100,000, in turns within one run.
"""

from typing import Final

from bench.history import make_history
from bench.hosting import PromptModel, prompt, running_host, temporary_home
from bench.measure import Measurement, median, ratio_of_medians
from tests.support.builders import MAIN

SHORT_COUNT: Final = 100
LONG_COUNT: Final = 100_000
TURNS_COUNT: Final = 150
RATIO_MAX: Final = 1.3
_WARM_UP_COUNT: Final = 10


async def run() -> list[Measurement]:
    """Time turns with both pasts, and compare."""
    with temporary_home() as short_home, temporary_home() as long_home:
        make_history(short_home, turns_count=SHORT_COUNT)
        make_history(long_home, turns_count=LONG_COUNT)
        short: list[float] = []
        long: list[float] = []
        async with (
            running_host(short_home, model=PromptModel(uses_tool=True)) as young,
            running_host(long_home, model=PromptModel(uses_tool=True)) as old,
        ):
            for _ in range(TURNS_COUNT):
                short.append(await young.settle(prompt(MAIN)))
                long.append(await old.settle(prompt(MAIN)))
    short, long = short[_WARM_UP_COUNT:], long[_WARM_UP_COUNT:]
    return [
        Measurement(
            name=f"a turn after {LONG_COUNT:,} messages, against one after {SHORT_COUNT}",
            measured=ratio_of_medians(long, short),
            target=RATIO_MAX,
            detail=f"{1_000 * median(long):.1f} ms from prompt to settled turn",
        )
    ]
