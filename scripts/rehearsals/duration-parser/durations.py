"""Durations as people write them: `90s`, `1h30m`, `2d`."""

import re

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
PART = re.compile(r"(\d+)([dhms])")


def seconds_of(text: str) -> int:
    """Return how long a duration is, in seconds; ValueError when the text is none."""
    parts = PART.findall(text)
    if not parts:
        raise ValueError(f"{text!r} is no duration")
    amount, unit = parts[0]
    return int(amount) * SECONDS[unit]
