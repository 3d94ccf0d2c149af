"""The options a service was started with, as it writes them down for whoever comes later.

Owns:  their form in `daemon.json`, and reading it.
Rule 1: a token is never written down: only that there was one, or which file it is in.
Rule 2: what is written down is what the options amount to, address and all, so that one of them can
        be replaced without asking how the others were spelled.
Rule 3: a nearby version reads it: what it does not understand counts as not written down.
"""

from pathlib import Path

import msgspec

from holon.model.ids import AgentId
from holon.model.json_value import JsonValue
from holon.ports.journal import LogLevel
from holon.serve.access_plan import AccessMode, AccessRequest, plan_access
from holon.serve.effective_config import ServeRequest


class RecordedOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """What a service was started with, besides its settings."""

    access: AccessMode
    host: str
    port: int
    agent: str
    advertise: str | None = None
    callback_base: str | None = None
    has_token: bool = False  # one was given by value
    token_file: str | None = None
    workspace_root: str | None = None
    log_level: LogLevel | None = None

    def request(self) -> ServeRequest:
        """The same request once more; a token that was given by value is not in it."""
        return ServeRequest(
            access=AccessRequest(
                mode=self.access,
                host=self.host,
                port=self.port,
                advertise=self.advertise,
                callback_base=self.callback_base,
                has_own_token=self.has_token or self.token_file is not None,
            ),
            token_file=None if self.token_file is None else Path(self.token_file),
            default_agent=AgentId(self.agent),
            workspace_dir=self.workspace_root,
            log_level=self.log_level,
        )


def recorded_options(asked: ServeRequest) -> RecordedOptions:
    """Return what is written down of a request; raises BadAccessError."""
    plan = plan_access(asked.access)
    return RecordedOptions(
        access=plan.mode,
        host=plan.host,
        port=plan.port,
        agent=asked.default_agent,
        advertise=plan.advertise,
        callback_base=plan.callback_base,
        has_token=asked.has_token_by_value,
        token_file=None if asked.token_file is None else str(asked.token_file),
        workspace_root=asked.workspace_dir,
        log_level=asked.log_level,
    )


def read_options(written: JsonValue) -> RecordedOptions | None:
    """Return what was written down, or nothing when it cannot be read."""
    try:
        return msgspec.convert(written, RecordedOptions)
    except msgspec.ValidationError:
        return None
