"""Options of a service across restarts, and the checks before a restart.

Owns:  the options an earlier process recorded; the checks of a restart; the command that changes
       the configuration of a running service.
Rule 1: a restart keeps options it is not given, so the command names only what differs. An option
        that cannot be unset requires a restart from the defaults.
Rule 2: a token is not printed: other users may read the output.
Rule 3: what would keep the new process from starting is refused here, as far as it can be checked
        from outside: a healthy service is not ended for one that cannot start.
Rule 4: an address held by the old process is no obstacle: it is released when that process ends.
"""

import os
import shlex
from typing import Final

from holon.adapters.exec.process_table import is_living
from holon.adapters.system.listening_sockets import AddressTakenError, require_bindable
from holon.adapters.system.run_files import RunFiles, RuntimeRecord
from holon.model.errors import BadInputError
from holon.model.values import AgentId
from holon.serve.access_plan import AccessRequest, BadAccessError, plan_access
from holon.serve.effective_config import (
    RecordedOptions,
    ServeRequest,
    read_options,
    recorded_options,
)

_RESTART: Final = "holon daemon restart"
_FROM_DEFAULTS: Final = "holon daemon restart --defaults"
_DEFAULTS: Final = ServeRequest(access=AccessRequest(), default_agent=AgentId("main"))


def replacing_command(asked: ServeRequest, running: RecordedOptions | None) -> str:
    """Return the command that replaces the running service by one with these options."""
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
    """Return the command with every option that differs."""
    told = [
        f"{name} {shlex.quote(value)}"
        for name, value in wanted.items()
        if value is not None and (value != known[name] or name == "--token")
    ]
    return " ".join([begins, *told])


class NoWorkspaceError(BadInputError):
    """The workspace directory does not exist."""

    code = "no_workspace"


def options_in_use(files: RunFiles) -> RecordedOptions | None:
    """Return the recorded options of the process that serves a home, if any."""
    record = _living_record(files)
    return None if record is None else read_options(record.options)


def options_last_used(files: RunFiles) -> RecordedOptions | None:
    """Return the recorded options of the last process of a home, if it did not end cleanly."""
    record = files.read_record()
    return None if record is None else read_options(record.options)


def require_startable(files: RunFiles, asked: ServeRequest) -> None:
    """Raise the error with which a replacement of the running process would fail."""
    require_token(asked)
    if asked.workspace_dir is not None and not os.path.isdir(asked.workspace_dir):
        raise NoWorkspaceError(
            f"the workspace root {asked.workspace_dir} is not a directory",
            hint="choose one with --workspace-root",
        )
    plan = plan_access(asked.access)
    try:
        require_bindable(plan.host, plan.port)
    except AddressTakenError:
        if not _is_held_by_ours(files, plan.port):
            raise


def require_token(asked: ServeRequest) -> None:
    """Raise BadAccessError if a token is required that only the earlier process had."""
    if asked.has_token_by_value and asked.token is None:
        raise BadAccessError(
            "the service was started with --token, and tokens are not recorded",
            hint="give it again with --token, or use --token-file FILE",
        )


def _is_held_by_ours(files: RunFiles, port: int) -> bool:
    record = _living_record(files)
    return (
        record is not None
        and record.http_addr is not None
        and record.http_addr.rpartition(":")[2] == str(port)
    )


def _living_record(files: RunFiles) -> RuntimeRecord | None:
    record = files.read_record()
    return record if record is not None and is_living(record.identity()) else None
