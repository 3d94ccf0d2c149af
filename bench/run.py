"""Runs every bench: `python -m bench.run [name …]`. `provider` names all that begin with it.

Owns:  the order, the exit code, and bench/RESULTS.md. A missed target ends the run with an error,
       but only after everything was measured.
"""

import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from bench import (
    admission,
    event_clients,
    exec_spawn,
    fifty_rounds,
    hostile_crowd,
    idle_agents,
    memory_search,
    prompt_cache_share,
    prompt_frame,
    prompt_load,
    provider_first_byte,
    provider_imports,
    provider_lowering,
    retention,
    sleepers,
    start_up,
    state_reads,
    status_command,
    trigger_load,
    turn_cost,
    wake_latency,
)
from bench.measure import Measurement

BENCHES: Final[Mapping[str, Callable[[], Awaitable[list[Measurement]]]]] = {
    "admission": admission.run,
    "sleepers": sleepers.run,
    "turn_cost": turn_cost.run,
    "retention": retention.run,
    "memory_search": memory_search.run,
    "prompt_frame": prompt_frame.run,
    "provider_lowering": provider_lowering.run,
    "provider_first_byte": provider_first_byte.run,
    "provider_imports": provider_imports.run,
    "exec_spawn": exec_spawn.run,
    "fifty_rounds": fifty_rounds.run,
    "start_up": start_up.run,
    "status_command": status_command.run,
    "hostile_crowd": hostile_crowd.run,
    "state_reads": state_reads.run,
    "event_clients": event_clients.run,
    "idle_agents": idle_agents.run,
    "prompt_load": prompt_load.run,
    "prompt_cache_share": prompt_cache_share.run,
    "trigger_load": trigger_load.run,
    "wake_latency": wake_latency.run,
}
RESULTS: Final = Path(__file__).parent / "RESULTS.md"
_HEAD: Final = """\
# Speed and size

Written by `make bench`. Every number compares two things measured in turns within one run, on the
disk temporary files live on, so that it can be held against the same number from another machine.

"""


async def measure(names: Sequence[str]) -> list[Measurement]:
    """Run the named benches one after the other, and say what each found."""
    found: list[Measurement] = []
    for name in names:
        for measurement in await BENCHES[name]():
            print(measurement, flush=True)
            found.append(measurement)
    return found


def write_results(found: Sequence[Measurement]) -> None:
    """Write what was measured for people to read."""
    python, sqlite = platform.python_version(), apsw.sqlite_lib_version()
    lines = [
        "| what | measured | target | |",
        "|---|---|---|---|",
        *(
            f"| {each.name} | {each.measured:.2f}{each.unit} | {each.target_text} |"
            f" {'ok' if each.is_ok else '**missed**'} |"
            for each in found
        ),
        "",
        f"Last run on {datetime.now(UTC):%Y-%m-%d} with Python {python}, SQLite {sqlite},"
        f" apsw {apsw.apsw_version()}.",
    ]
    RESULTS.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")


def named(name: str) -> list[str]:
    """Return the benches a name stands for: the one of that name, or all of that group."""
    return [each for each in BENCHES if each == name or each.startswith(f"{name}_")]


def main(names: Sequence[str]) -> int:
    """Measure; 0 when every target was met."""
    if unknown := [name for name in names if not named(name)]:
        print(f"no bench is called {unknown[0]}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    chosen = [each for name in names for each in named(name)]
    found = asyncio.run(measure(chosen or list(BENCHES)))
    if not names:
        write_results(found)
    return int(not all(each.is_ok for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
