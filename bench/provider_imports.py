"""What importing the provider plane brings along.

Owns:  the count of vendor packages that are loaded with every wire, in a process of its own. They
       judge our requests in tests and have no place in the product.
"""

import json
import subprocess
import sys
from typing import Final

from bench.measure import Measurement

VENDORS: Final = frozenset({"openai", "anthropic"})
_WIRES: Final = (
    "openai_responses.transport",
    "openai_codex",
    "openai_chat.transport",
    "anthropic_messages.transport",
)
_PROGRAM: Final = """
import json, sys, time
before, began = set(sys.modules), time.perf_counter()
for name in sys.argv[1:]:
    __import__(name)
took_s = time.perf_counter() - began
print(json.dumps([took_s, sorted(set(sys.modules) - before)]))
"""


async def run() -> list[Measurement]:
    """Import the plane and every wire, and count."""
    took_s, modules = imported(
        "holon.adapters.providers.resolver",
        "holon.adapters.providers.http.remote_client",
        *(f"holon.adapters.providers.{wire}" for wire in _WIRES),
    )
    vendor = [name for name in modules if name.partition(".")[0] in VENDORS]
    return [
        Measurement(
            name="vendor modules loaded by importing the provider plane and its wires",
            measured=len(vendor),
            target=0,
            unit="",
            detail=f"{len(modules)} modules in {1_000 * took_s:.0f} ms",
        )
    ]


def imported(*names: str) -> tuple[float, list[str]]:
    """Return how many seconds some imports take in a new process, and all they load."""
    program = [sys.executable, "-c", _PROGRAM, *names]
    found = subprocess.run(program, capture_output=True, check=True, text=True).stdout
    took_s, modules = json.loads(found)
    return took_s, modules
