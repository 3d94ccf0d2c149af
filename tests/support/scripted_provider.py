"""The scripted model for tests and simulation.

Owns:  the names tests use, and scripts in JSON form for hosts under test. Scripts themselves belong
       to the product: adapters/providers/scripted.
"""

import msgspec

from holon.adapters.providers.scripted.provider import ScriptedProvider, spoken
from holon.adapters.providers.scripted.script import (
    FAILURES,
    Expectation,
    Script,
    ScriptedCall,
    ScriptedRound,
    ScriptedRule,
)

__all__ = [
    "FAILURES",
    "Expectation",
    "Script",
    "ScriptedCall",
    "ScriptedProvider",
    "ScriptedRound",
    "ScriptedRule",
    "read_script",
    "spoken",
]


def read_script(data: bytes) -> Script:
    """Read a script from its JSON form."""
    return msgspec.json.decode(data, type=Script)
