"""The two servers that deliveries are compared on, each as a process of its own.

Owns:  `trigger_servers.py holon|bare HOME`: it says its port and the paths of its triggers on
       stdout, and serves until its input ends. Both serve homes of the same agents.
`holon` is the control plane on a host whose agents are all in the middle of a turn, so that it does
nothing but take deliveries, and with limits nobody reaches. `bare` is Starlette on uvicorn with the
same event loop and the same HTTP parser: it checks the secret, and writes the same rows by a bare
group-commit writer.
"""

import asyncio
import hmac
import json
import socket
import sys
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

import apsw
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.bare_writer import BareWriter, DeliveryRows
from bench.hosting import SilentModel, prompt
from bench.sleepers import make_home
from holon.adapters.sqlite.database.connection import open_writer
from holon.adapters.sqlite.database.home_lock import database_path
from holon.decide.wake.triggers import split_token, trigger_secret
from holon.http.access import DeliveryRates
from holon.model.limits import CHECKPOINT_PAGES
from holon.model.values import AgentId, TriggerId
from holon.serve.foreground import run_service
from tests.support.control_server import ControlServer, ServerOptions, control_server
from tests.support.single_model import SingleModel

AGENTS_COUNT: Final = 64
BACKLOG_COUNT: Final = 256
_NO_LIMIT: Final = 10**9
_KEY: Final = b"the key of the bare server's triggers"
_CREATE: Final = """
insert into external_triggers (
    external_trigger_id, agent_id, delivery_mode, status, epoch, created_at, delivery_count
) values (?1, ?2, 'wake_hint', 'active', 1, 0, 0)
"""


def _say(port: int, paths: list[str]) -> None:
    print(json.dumps({"port": port, "paths": paths}), flush=True)


async def _input_ended() -> None:
    await asyncio.to_thread(sys.stdin.read)


async def serve_holon(home: Path) -> None:
    """Serve the control plane."""
    rates = DeliveryRates(
        burst=_NO_LIMIT, per_minute=_NO_LIMIT, all_burst=_NO_LIMIT, all_per_minute=_NO_LIMIT
    )
    options = ServerOptions(models=SingleModel(SilentModel()), rates=rates)
    async with control_server(home, options) as server:
        paths = [await _busy_agent(server, f"agent-{n}") for n in range(AGENTS_COUNT)]
        _say(server.operator.port, paths)
        await _input_ended()


async def _busy_agent(server: ControlServer, agent_id: str) -> str:
    await server.host.admit(prompt(agent_id))
    url = server.host.triggers.url_of(await server.host.triggers.ensure(AgentId(agent_id)))
    assert url is not None
    return url.removeprefix(server.context.facts.base_url)


class BareEndpoint:
    """Takes deliveries in, and does nothing else."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._writer = BareWriter(connection)
        self._triggers: dict[str, str] = {}  # id to agent
        for number in range(AGENTS_COUNT):
            trigger_id, agent_id = f"trg_{number:026}", f"agent-{number}"
            self._triggers[trigger_id] = agent_id
            connection.execute(_CREATE, (trigger_id, agent_id))

    def paths(self) -> list[str]:
        """Return where triggers are called."""
        return [
            f"/callbacks/wake/{trigger_id}.{self._secret(trigger_id, agent_id)}"
            for trigger_id, agent_id in self._triggers.items()
        ]

    def _secret(self, trigger_id: str, agent_id: str) -> str:
        return trigger_secret(_KEY, TriggerId(trigger_id), epoch=1, agent_id=AgentId(agent_id))

    async def wake(self, request: Request) -> JSONResponse:
        """Check the secret, write the rows, answer."""
        trigger_id, secret = split_token(request.path_params["token"])
        agent_id = self._triggers.get(trigger_id, "")
        if not hmac.compare_digest(self._secret(trigger_id, agent_id), secret):
            return JSONResponse({"ok": False}, status_code=404)
        body = (await request.body()).decode()
        await self._writer.insert(_rows(trigger_id, agent_id, body))
        return JSONResponse({"ok": True, "agent_id": agent_id, "disposition": "coalesced"})


def _rows(trigger_id: str, agent_id: str, body: str) -> DeliveryRows:
    at, source_key = time.time_ns() // 1_000, f"trigger:{trigger_id}"
    hint = {
        "agent_id": agent_id,
        "source_key": source_key,
        "reason": "external_trigger",
        "created_at": at,
        "updated_at": at,
        "external_trigger_id": trigger_id,
        "delivery_mode": "wake_hint",
        "body": body,
        "content_type": "application/json",
    }
    event = {"kind": "callback_delivered", "external_trigger_id": trigger_id, "source": source_key}
    return DeliveryRows(
        commit=(f"deliver:{trigger_id}:{uuid4()}", at),
        counted=(trigger_id, agent_id, 1, at),
        hint=(agent_id, source_key, at, msgspec.json.encode(hint).decode()),
        agent_id=agent_id,
        at=at,
        event=msgspec.json.encode(event).decode(),
    )


async def serve_bare(home: Path) -> None:
    """Serve the bare endpoint."""
    connection = open_writer(database_path(home))
    connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)  # as often as the host
    endpoint = BareEndpoint(connection)
    app = Starlette(routes=[Route("/callbacks/wake/{token}", endpoint.wake, methods=["POST"])])
    config = uvicorn.Config(app, http="h11", log_level="error", access_log=False)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG_COUNT) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        _say(listening.getsockname()[1], endpoint.paths())
        await _input_ended()
        server.should_exit = True
        await serving


def main(which: str, home: str) -> None:
    """Make the home, and serve it."""
    make_home(Path(home), agents_count=AGENTS_COUNT)
    serve = serve_holon if which == "holon" else serve_bare
    run_service(lambda: serve(Path(home)))


if __name__ == "__main__":
    main(*sys.argv[1:])
