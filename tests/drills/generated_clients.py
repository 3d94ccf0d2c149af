"""Clients that are made of the OpenAPI document, and one of them in use.

    python -m tests.drills.generated_clients

Two generators of others read the document of this surface. What they write must import, and a
client made so speaks to a running service. They are in requirements/drill.txt; without them this
says so.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import anyio
import anyio.to_thread
import msgspec

from holon.http.openapi import openapi_document
from holon.http.table import ROUTES
from tests.support.control_server import MAIN, TOKEN, control_server

_GENERATORS = ("datamodel_code_generator", "openapi_python_client")


def generate(folder: Path) -> None:
    """Have both generators write what they make of the document; raises when one fails."""
    document = folder / "openapi.json"
    document.write_bytes(msgspec.json.encode(openapi_document(ROUTES, version="0")))
    models = ["--input", str(document), "--input-file-type", "openapi"]
    models += ["--output", str(folder / "holon_models.py")]
    models += ["--output-model-type", "pydantic_v2.BaseModel"]
    client = ["generate", "--path", str(document), "--meta", "none"]
    client += ["--output-path", str(folder / "holon_client"), "--fail-on-warning"]
    # One of them calls ruff by its name, and warns without it. It is installed beside this Python.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environ = {**os.environ, "PATH": path}
    for module, arguments in zip(_GENERATORS, (models, client), strict=True):
        command = [sys.executable, "-m", module, *arguments]
        subprocess.run(command, check=True, cwd=folder, env=environ)


async def use(folder: Path) -> None:
    """Import what was made, and call a running service with it."""
    sys.path.insert(0, str(folder))
    models = importlib.import_module("holon_models")
    client = importlib.import_module("holon_client")
    async with control_server(folder / "home") as server:
        url = server.context.facts.base_url
        opened = client.AuthenticatedClient(base_url=url, token=TOKEN)
        read = _operation("get_agents_agent_id_status")
        summary = await anyio.to_thread.run_sync(partial(read.sync, MAIN, client=opened))
        assert summary.identity.agent_id == MAIN, summary
        body = client.models.PromptRequest(text="hello")
        say = _operation("post_control_agents_agent_id_prompt")
        told = await anyio.to_thread.run_sync(partial(say.sync, MAIN, client=opened, body=body))
        assert told.agent_id == MAIN, told
        answer = await server.operator.get(f"/agents/{MAIN}/status")
        whole = models.AgentSummary.model_validate_json(answer.body)
        assert whole.identity.agent_id == MAIN
        print(f"generated clients: 2 generators, {len(vars(models))} names, 2 calls answered")


def _operation(name: str) -> ModuleType:
    return importlib.import_module(f"holon_client.api.agents.{name}")


def main() -> int:
    """Generate, import and call; 0 when all of it works, or the generators are not there."""
    if any(find_spec(module) is None for module in _GENERATORS):
        print("generated clients: skipped, the generators are not installed")
        return 0
    with tempfile.TemporaryDirectory(prefix="holon-generated-") as folder:
        generate(Path(folder))
        anyio.run(use, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
