"""The composition root: a home and a directory of models become a running host.

Owns:  the only place where adapters meet the runtime. No logic.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.model.retention import RetentionPolicy
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.provider import ModelDirectory
from holon.ports.redactor import NothingToRedact, Redactor
from holon.runtime.host import Host
from holon.runtime.provider_gate import ProviderGate
from holon.runtime.services import Services
from holon.tools.registry import builtin_tools


@dataclass(frozen=True, kw_only=True, slots=True)
class HostOptions:
    """What a host may be given besides its home and its models."""

    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
    gate: ProviderGate = field(default_factory=ProviderGate)
    redactor: Redactor = field(default_factory=NothingToRedact)
    deferral_allowed: bool = True
    fallback_disabled: bool = False
    failpoints: Failpoints = field(default_factory=NoFailpoints)


@asynccontextmanager
async def open_host(
    home: Path, models: ModelDirectory, options: HostOptions | None = None
) -> AsyncIterator[Host]:
    """Open the home, recover what an earlier process left, and serve while the block runs.

    Raises a StoreError when the home cannot be opened; the message says what to do.
    """
    chosen = options or HostOptions()
    store = open_store(home)
    services = Services(
        store=store,
        clock=SystemClock(),
        ids=TimeOrderedIds(),
        models=models,
        tools=builtin_tools(),
        gate=chosen.gate,
        redactor=chosen.redactor,
        deferral_allowed=chosen.deferral_allowed,
        fallback_disabled=chosen.fallback_disabled,
        failpoints=chosen.failpoints,
        retention=chosen.retention,
    )
    host = Host(services)
    try:
        async with anyio.create_task_group() as serving:
            serving.start_soon(host.run)
            await host.wait_ready()
            yield host
            serving.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):  # what was accepted is written before we let go
            await store.close()
