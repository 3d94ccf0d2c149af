"""What this process uses of the machine.

Owns:  reading its memory and its processor time from the system.
"""

import os
import resource
from pathlib import Path
from typing import Final

from holon.model.record import Record

_STATM: Final = Path("/proc/self/statm")
_KIB: Final = 1_024  # the unit of ru_maxrss


class ProcessUsage(Record, frozen=True, kw_only=True):
    """Memory in use right now, and processor time since the start."""

    resident_bytes: int
    cpu_s: float


def process_usage() -> ProcessUsage:
    """Look at ourselves. Where the present size cannot be read, the largest so far stands in."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
        resident_bytes = pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        resident_bytes = used.ru_maxrss * _KIB
    return ProcessUsage(resident_bytes=resident_bytes, cpu_s=used.ru_utime + used.ru_stime)
