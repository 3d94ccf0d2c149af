"""The event loop a service runs on.

Owns:  the choice: uvloop where it is installed, else asyncio's own. Only for services: one that
       lives for moments gains less by the faster loop than loading it costs.
Rule 1: the thread that writes does not wait long for a loop that is busy: every commit would.
"""

import gc
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Final

import anyio

SWITCH_S: Final = 0.001  # a fifth of what Python gives a thread before another has its turn


def run_service(serve: Callable[[], Awaitable[None]]) -> None:
    """Run until it has ended."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()  # what was loaded stays: no collection needs to look at it again
    anyio.run(serve, backend_options={"use_uvloop": find_spec("uvloop") is not None})
