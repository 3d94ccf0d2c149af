"""What every part of the runtime works with.

Owns:  the bundle of ports a host is made of, and its settings. No logic.
"""

from dataclasses import dataclass, field

from holon.model.retention import RetentionPolicy
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.id_source import IdSource
from holon.ports.provider import Provider
from holon.ports.store import Store
from holon.tools.registry import ToolRegistry


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """The ports of one host."""

    store: Store
    clock: Clock
    ids: IdSource
    provider: Provider
    tools: ToolRegistry
    failpoints: Failpoints = field(default_factory=NoFailpoints)
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
