"""The options a service was started with, their fingerprint, and their record in `daemon.json`.

Owns:  the serve request; the fingerprint of it with the settings; writing and reading the record;
       choosing and checking the control token.
Rule 1: a client and the runtime compute the fingerprint here, from the same values. It excludes the
        token, because every user of the status sees it.
Rule 2: a token is never recorded: only that one was given, or which file it is in.
Rule 3: the record holds the resolved options, including the address, so that one of them can be
        replaced without knowing how the others were spelled.
Rule 4: a nearby version can read it: what it does not understand counts as absent.
Rule 5: an unusable token refuses the start: a service that no client can call is not up.
Rule 6: only the home's own token file is generated. A file named by the operator must exist.
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from holon.adapters.system.control_token import FixedToken, TokenFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings, config_fingerprint
from holon.model.values import AgentId, JsonValue
from holon.ports.journal import LogLevel
from holon.serve.access_plan import AccessMode, AccessRequest, plan_access

_NAME: Final = "control_token"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeRequest:
    """The options of a service besides its settings. Paths are absolute."""

    access: AccessRequest
    token: str | None = None
    token_file: Path | None = None
    default_agent: AgentId
    workspace_dir: str | None = None
    log_level: LogLevel | None = None  # in place of the settings'

    @property
    def has_token_by_value(self) -> bool:
        """Whether a token was given; its value may be unknown, because it is never recorded."""
        return self.access.has_own_token and self.token_file is None


def effective_fingerprint(settings: Settings, asked: ServeRequest) -> str:
    """Return the fingerprint of settings and options; raises BadAccessError."""
    plan = plan_access(asked.access)
    return config_fingerprint(
        settings,
        {
            "access": plan.mode.value,
            "host": plan.host,
            "port": plan.port,
            "advertise": plan.advertise,
            "callback_base": plan.callback_base,
            "own_token": int(asked.has_token_by_value),
            "token_file": None if asked.token_file is None else str(asked.token_file),
            "default_agent": asked.default_agent,
            "workspace_dir": asked.workspace_dir,
            "log_level": asked.log_level,
        },
    )


class RecordedOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """The recorded options of a service, besides its settings."""

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
        """Return the recorded request, without a token that was given by value."""
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
    """Return the record of a request; raises BadAccessError."""
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
    """Return the recorded options, or None if they cannot be read."""
    try:
        return msgspec.convert(written, RecordedOptions)
    except msgspec.ValidationError:
        return None


def require_usable_token(asked: ServeRequest, own: Path) -> None:
    """Raise BadTokenError for an unusable token; creates nothing."""
    if asked.token is not None:
        FixedToken(asked.token)
    elif asked.token_file is not None:
        TokenFile(asked.token_file).require_usable()
    elif os.path.lexists(own):
        TokenFile(own).require_usable(is_replaceable=True)


def service_token(
    asked: ServeRequest, own: Path, secrets: SecretRegistry
) -> FixedToken | TokenFile:
    """Return the current token, registered as a secret; raises BadTokenError."""
    if asked.token is not None:
        secrets.learn(_NAME, asked.token)
        return FixedToken(asked.token)
    file = TokenFile(asked.token_file or own, learn=partial(secrets.learn, _NAME))
    if asked.token_file is None:
        file.make_if_missing()
    require_usable_token(asked, own)
    secrets.learn(_NAME, file.text())
    return file
