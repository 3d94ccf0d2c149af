"""Options of a service in the words of the command line.

Owns:  the command that replaces a service by one with another configuration.
Rule 1: a restart keeps what it is not told to change, so the command names what differs, and no
        more. What no option takes back needs a restart from the defaults.
Rule 2: a token is not spelled out: what is printed may be read by others.
"""

import shlex
from typing import Final

from holon.model.ids import AgentId
from holon.serve.access_plan import AccessRequest
from holon.serve.effective_config import ServeRequest
from holon.serve.recorded_options import RecordedOptions, recorded_options

_RESTART: Final = "holon daemon restart"
_FROM_DEFAULTS: Final = "holon daemon restart --defaults"
_DEFAULTS: Final = ServeRequest(access=AccessRequest(), default_agent=AgentId("main"))


def replacing_command(asked: ServeRequest, running: RecordedOptions | None) -> str:
    """Return what to type so that a service runs as asked in place of the one that does."""
    wanted, defaults = _words(recorded_options(asked)), _words(recorded_options(_DEFAULTS))
    found = _words(running) if running is not None else defaults
    if any(found[name] is not None and wanted[name] is None for name in wanted):
        return _command(_FROM_DEFAULTS, wanted, defaults)
    return _command(_RESTART, wanted, found)


def _words(options: RecordedOptions) -> dict[str, str | None]:
    return {
        "--access": options.access.value,
        "--host": options.host,
        "--port": str(options.port),
        "--advertise": options.advertise,
        "--token": "TOKEN" if options.has_token else None,
        "--token-file": options.token_file,
        "--workspace-root": options.workspace_root,
        "--agent": options.agent,
        "--log-level": options.log_level,
    }


def _command(begins: str, wanted: dict[str, str | None], known: dict[str, str | None]) -> str:
    """The command with every option that is not known already."""
    told = [
        f"{name} {shlex.quote(value)}"
        for name, value in wanted.items()
        if value is not None and (value != known[name] or name == "--token")
    ]
    return " ".join([begins, *told])
