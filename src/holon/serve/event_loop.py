"""The event loop a service runs on.

Owns:  how its process is tuned for a long life; the loop is asyncio's own (docs/decisions/0015).
Rule 1: a thread that has made a commit durable does not wait long for a loop that is busy.
"""

import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

SWITCH_S: Final = 0.001  # a fifth of what Python gives a thread before another has its turn
# Between two searches for garbage. Cancelled tasks leave cycles: with 50,000 a busy service held
# 130,000 objects that were garbage, and its memory kept rising by such peaks.
ALLOCATIONS_COUNT: Final = 10_000


def run_service(serve: Callable[[], Awaitable[None]]) -> None:
    """Run until it has ended."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(ALLOCATIONS_COUNT)
    gc.freeze()  # what was loaded stays: no collection needs to look at it again
    anyio.run(serve)
