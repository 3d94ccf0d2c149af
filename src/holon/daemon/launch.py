"""The command a runtime in the background is started with.

Owns:  turning a request to serve into a program, its arguments and its environment.
Rule 1: the program gets what was asked for and nothing else, so that its fingerprint is ours.
Rule 2: a token never stands among the arguments, where every user of the machine can read it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from holon.adapters.system.detached_process import READY_HANDLE
from holon.config.environment_names import CALLBACK_BASE_URL, CONTROL_TOKEN
from holon.serve.effective_config import ServeRequest


def launch_arguments(home: Path, asked: ServeRequest) -> list[str]:
    """Return the program and its arguments."""
    access = asked.access
    options: dict[str, str | int | None] = {
        "--home": str(home),
        "--access": access.mode.value,
        "--listen": access.listen,
        "--host": access.host,
        "--port": access.port,
        "--advertise": access.advertise,
        "--token-file": None if asked.token_file is None else str(asked.token_file),
        "--workspace-root": asked.workspace_dir,
        "--agent": asked.default_agent,
        "--log-level": asked.log_level,
        "--ready-handle": READY_HANDLE,
    }
    given = [
        text for name, value in options.items() if value is not None for text in (name, str(value))
    ]
    # -P: a folder the operator happens to stand in is no place to load code from.
    return [sys.executable, "-P", "-m", "holon", "serve", *given]


def launch_environment(environ: Mapping[str, str], asked: ServeRequest) -> dict[str, str]:
    """Return the environment it runs in: ours, with the token that was asked for and no other."""
    asked_for = {CONTROL_TOKEN: asked.token, CALLBACK_BASE_URL: asked.access.callback_base}
    found = {name: value for name, value in environ.items() if name not in asked_for}
    return found | {name: value for name, value in asked_for.items() if value is not None}
