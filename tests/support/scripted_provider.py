"""The scripted model, as the tests and the simulation know it.

Owns:  the names tests use, and scripts in JSON form for hosts under test. What a script is and how
       it is played belongs to the product: adapters/providers/scripted.
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
