"""What tells that a file is still the one that was read.

Owns:  the stamp: which file it is, its size, and the moments of its last changes. The moment its
       facts last changed (ctime) is part of it, which a writer cannot choose.
Rule 1: a file that has changed only a moment ago has no stamp that lasts: a kernel whose clock
        ticks slowly gives two changes within one tick the same moment.
"""

import os
import time
from typing import Final, TypeAlias

Stamp: TypeAlias = tuple[int, int, int, int, int]

TICK_NS: Final = 20_000_000  # longer than any kernel's


def stamp_of(facts: os.stat_result) -> Stamp:
    """Return the stamp of a file as it is."""
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def lasting_stamp(facts: os.stat_result, *, now_ns: int | None = None) -> Stamp | None:
    """Return the stamp to remember what is read now by, or nothing: then it is read again."""
    age_ns = (time.time_ns() if now_ns is None else now_ns) - facts.st_ctime_ns
    return stamp_of(facts) if age_ns > TICK_NS else None
