"""What every part of the runtime works with.

Owns:  the bundle of ports a host is made of, and its settings. No logic.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from holon.model.answer import AnswerProgress
from holon.model.ids import AgentId
from holon.model.retention import RetentionPolicy
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.id_source import IdSource
from holon.ports.provider import ModelDirectory
from holon.ports.redactor import NothingToRedact, Redactor
from holon.ports.store import Store
from holon.runtime.provider_gate import ProviderGate
from holon.tools.registry import ToolRegistry

ProgressListener: TypeAlias = Callable[[AgentId, AnswerProgress], None]


def unwatched(agent_id: AgentId, progress: AnswerProgress) -> None:
    """Nobody watches answers grow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """The ports of one host."""

    store: Store
    clock: Clock
    ids: IdSource
    models: ModelDirectory
    tools: ToolRegistry
    gate: ProviderGate = field(default_factory=ProviderGate)
    redactor: Redactor = field(default_factory=NothingToRedact)
    progress: ProgressListener = unwatched
    deferral_allowed: bool = True  # a turn may wait for the moment its provider named
    fallback_disabled: bool = False
    failpoints: Failpoints = field(default_factory=NoFailpoints)
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
