"""The composition root: a home and a provider become a running host.

Owns:  the only place where adapters meet the runtime. No logic.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.model.retention import RetentionPolicy
from holon.ports.failpoint import Failpoints, NoFailpoints
from holon.ports.provider import Provider
from holon.runtime.host import Host
from holon.runtime.services import Services
from holon.tools.registry import builtin_tools


@asynccontextmanager
async def open_host(
    home: Path,
    provider: Provider,
    *,
    retention: RetentionPolicy | None = None,
    failpoints: Failpoints | None = None,
) -> AsyncIterator[Host]:
    """Open the home, recover what an earlier process left, and serve while the block runs.

    Raises a StoreError when the home cannot be opened; the message says what to do.
    """
    store = open_store(home)
    services = Services(
        store=store,
        clock=SystemClock(),
        ids=TimeOrderedIds(),
        provider=provider,
        tools=builtin_tools(),
        failpoints=failpoints or NoFailpoints(),
        retention=retention or RetentionPolicy(),
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
