"""Mutants in what a long-lived service adds: streams, the door, commands' files, its end."""

import socket
from collections.abc import Sequence
from typing import Any

import anyio

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.run_folder import RunFolder
from holon.http.server.listeners import Listeners, _ConnectionPool, accepted
from holon.model.events.event import AuditEvent
from holon.model.providers.models import ModelRef, parse_model_ref
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.tasks import CommandSpec
from holon.model.turns.turn import ModelAnswered, ModelFailed
from holon.model.values import AgentId
from holon.runtime.events.feed import EventFeed, EventReader, SubscriberLaggedError
from holon.runtime.providers.caller import ProviderCaller, _FallbackChain
from tests.mutants.planting import plant_method


def plant_m10() -> None:
    """Move a reader who fell behind to the newest event, and say nothing."""
    honest = EventFeed._agent_page

    async def forgiving(self: EventFeed, place: tuple[AgentId | None, int]) -> Sequence[AuditEvent]:
        try:
            return await honest(self, place)
        except SubscriberLaggedError:
            agent_id, _ = place
            assert agent_id is not None
            _, newest = await self._store.reads.events.event_bounds(agent_id)
            return await honest(self, (agent_id, newest - 1))

    plant_method(EventFeed, "_agent_page", forgiving)


def plant_m11() -> None:
    """Put a reader's place at the newest event there is, then hand out what was missed."""
    honest = EventReader.page

    async def hasty(self: EventReader) -> Sequence[AuditEvent]:
        missed = await honest(self)
        while await honest(self):
            pass
        return missed

    plant_method(EventReader, "page", hasty)


def plant_m15() -> None:
    """Remember the model that answered last, for everybody."""
    begin, walk = _FallbackChain.__init__, _FallbackChain.run
    slot: list[ModelRef] = []

    def led(
        self: _FallbackChain,
        caller: ProviderCaller,
        request: ProviderRequest,
        models: Sequence[ModelRef],
    ) -> None:
        begin(self, caller, request, tuple(dict.fromkeys((*slot, *models))))

    async def run(self: _FallbackChain) -> ModelAnswered | ModelFailed:
        came = await walk(self)
        if isinstance(came, ModelAnswered) and came.timeline and came.timeline.winning_model_ref:
            slot[:] = [parse_model_ref(came.timeline.winning_model_ref)]
        return came

    plant_method(_FallbackChain, "__init__", led)
    plant_method(_FallbackChain, "run", run)


def plant_m17() -> None:
    """Let a command write to its file for as long as there is a disk."""
    honest = LocalShell._command_of

    def unbounded(self: LocalShell, spec: CommandSpec, folder: RunFolder) -> dict[str, Any]:
        return {**honest(self, spec, folder), "output_bytes": 1 << 60}

    plant_method(LocalShell, "_command_of", unbounded)


def plant_m20() -> None:
    """Accept until something stands in the way, whatever it is."""

    async def fragile(self: Listeners, bound: socket.socket, room: _ConnectionPool) -> None:
        async with anyio.create_task_group() as serving:
            while True:
                serving.start_soon(self._serve_one, await accepted(bound), room)

    plant_method(Listeners, "_accept_on", fragile)
