"""Reads durations drawn by chance until a file named `enough` stands beside this one.

Says at its beginning and at its end which process it is, and gives up after two minutes.
"""

import os
import random
import time
from pathlib import Path

from durations import SECONDS, seconds_of

ENOUGH = Path(__file__).with_name("enough")
SOAK_S_MAX = 120.0


def drawn(chance: random.Random) -> tuple[str, int]:
    """Return a duration and its seconds."""
    parts = [(chance.randrange(1_000), unit) for unit in SECONDS if chance.random() < 0.5]
    parts = parts or [(1, "s")]
    text = "".join(f"{amount}{unit}" for amount, unit in parts)
    return text, sum(amount * SECONDS[unit] for amount, unit in parts)


def main() -> None:
    """Soak the parser."""
    print(f"soak: process {os.getpid()} begins", flush=True)
    chance, count, began = random.Random(1), 0, time.monotonic()
    while not ENOUGH.exists() and time.monotonic() - began < SOAK_S_MAX:
        for _ in range(100):
            text, seconds = drawn(chance)
            assert seconds_of(text) == seconds, text
            count += 1
        time.sleep(0.02)
    print(f"soak: process {os.getpid()} read {count} durations, all of them right")


if __name__ == "__main__":
    main()
