"""A real host in a process of its own, driven by lines of JSON: made to be killed.

Owns:  `python -m holon.testing.host_process --home DIR`: a host on a real database with the real
       clock and real hands, and a scripted or drawn model. Commands come on stdin, answers go to
       stdout. Each agent works in its own home.
Rule 1: an answer is written only after what it says is durable.
Rule 2: end of input, `quit` and SIGTERM end the host in good order with exit code 0; a home that
        cannot be opened is one sentence on stderr and exit code 2; a host that broke is 1.
Rule 3: stdin is read on a thread, so that a silent caller never holds up the host.
"""

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio.abc import TaskGroup

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.files.contained_files import ContainedFiles
from holon.adapters.sqlite.connection import Synchronous
from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.adapters.system.places import SystemPlaces
from holon.model.agent import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.errors import BadInputError, DecodeError, HolonError, StoreError
from holon.model.ids import parse_agent_id
from holon.model.refusal import RefusalCode, RefusedError
from holon.ports.provider import Provider
from holon.ports.store import Store
from holon.runtime.host import Host
from holon.runtime.services import Services
from holon.serve.compose import COMMANDS_FOLDER
from holon.testing.armed_failpoints import ArmedFailpoints, parse_failpoints
from holon.testing.host_answers import Answerer, refused_by
from holon.testing.host_commands import Answer, Command, Note, Quit
from holon.testing.mixed_model import MixedModel
from holon.testing.scripted_provider import ScriptedProvider, read_script
from holon.testing.single_model import SingleModel
from holon.testing.stdin_lines import stdin_lines
from holon.tools.registry import local_registry
from holon.wire.codec import decode, encode


class Asked(NamedTuple):
    """The command line."""

    home: Path
    script: Path | None
    agents: tuple[str, ...]
    seed: int


class _NumberedLine(msgspec.Struct):
    """As much of a line as is needed to answer it."""

    id: int | None = None


def main(arguments: list[str]) -> int:
    """Run a host until it is told to end, and return the exit code."""
    asked = _parse(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        failpoints = ArmedFailpoints(parse_failpoints(os.environ.get("HOLON_FAILPOINTS", "")))
        script = asked.script.read_bytes() if asked.script else None
        store = open_store(asked.home, synchronous=Synchronous.FULL)
    except (StoreError, BadInputError) as error:
        _say(f"holon: {error.message}" + (f"; {error.hint}" if error.hint else ""))
        return 2
    clock = SystemClock()
    provider: Provider = MixedModel(clock, seed=asked.seed)
    if script is not None:
        provider = ScriptedProvider(read_script(script), clock)
    shell = LocalShell(asked.home / COMMANDS_FOLDER, os.environ, clock)
    services = Services(
        store=store,
        clock=clock,
        ids=TimeOrderedIds(),
        models=SingleModel(provider),
        tools=local_registry(),
        failpoints=failpoints,
        home=str(asked.home.resolve()),
        shell=shell,
        files=ContainedFiles(),
        places=SystemPlaces(),
    )
    try:
        return anyio.run(_HostProcess(services, store, failpoints, asked.agents).run)
    finally:
        shell.close()


def _parse(arguments: list[str]) -> Asked:
    parser = argparse.ArgumentParser(prog="holon.testing.host_process")
    parser.add_argument("--home", type=Path, required=True, help="where the host keeps its state")
    parser.add_argument("--script", type=Path, help="what the model says, as JSON")
    parser.add_argument("--agents", default="main", help="agents to create, separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="for the model, when it has no script")
    found = parser.parse_args(arguments)
    agents = tuple(name for name in found.agents.split(",") if name)
    return Asked(found.home, found.script, agents, found.seed)


class _HostProcess:
    """One life of the process."""

    def __init__(
        self,
        services: Services,
        store: Store,
        failpoints: ArmedFailpoints,
        agents: tuple[str, ...],
    ) -> None:
        self._services = services
        self._store = store
        self._agents = agents
        self._host = Host(services)
        self._answerer = Answerer(self._host, services, failpoints, tell=_print)

    async def run(self) -> int:
        """Serve until told to end; 0 in good order, 1 when the host broke."""
        exit_code = 0
        try:
            async with anyio.create_task_group() as life:
                life.start_soon(self._end_on_signal, life)
                life.start_soon(self._host.run)
                await self._host.wait_ready()
                await self._create_agents()
                lines = stdin_lines()
                _print(Note(note="ready", data={"pid": os.getpid()}))
                async for line in lines:
                    life.start_soon(self._handle, line, life)
                life.cancel_scope.cancel()  # nobody is left to ask anything
        except* HolonError as broken:
            for error in broken.exceptions:
                _say(f"holon: {error}")
            exit_code = 1
        finally:
            with anyio.CancelScope(shield=True):
                await self._store.close()
        return exit_code

    async def _end_on_signal(self, life: TaskGroup) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                life.cancel_scope.cancel()

    async def _create_agents(self) -> None:
        for name in self._agents:
            identity = AgentIdentity(
                agent_id=parse_agent_id(name),
                kind=AgentKind.NAMED,
                visibility=Visibility.PUBLIC,
                ownership=Ownership.SELF_OWNED,
                profile_preset=ProfilePreset.PUBLIC_NAMED,
                created_at=self._services.clock.now(),
            )
            try:
                await self._host.control.create_agent(identity)
            except RefusedError as refused:
                if refused.refusal.code is not RefusalCode.AGENT_EXISTS:
                    raise

    async def _handle(self, line: bytes | DecodeError, life: TaskGroup) -> None:
        number: int | None = None
        try:
            if isinstance(line, DecodeError):
                raise line
            number = _number_of(line)
            command: Command = decode(line, Command)
            _print(Answer(ok=True, id=number, result=await self._answerer.answer(command)))
            if isinstance(command, Quit):
                life.cancel_scope.cancel()
        except HolonError as error:
            _print(Answer(ok=False, id=number, refusal=refused_by(error)))


def _number_of(line: bytes) -> int | None:
    try:
        return decode(line, _NumberedLine).id
    except DecodeError:
        return None


def _print(said: Answer | Note) -> None:
    sys.stdout.buffer.write(encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
