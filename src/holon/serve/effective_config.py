"""What a runtime is started with, and whether that is what another one was started with.

Owns:  the request to serve, and the fingerprint of it together with the settings.
Rule 1: whoever asks for a runtime and the runtime itself compute the fingerprint here, from the
        same values. A token is no part of it: a fingerprint is shown to whoever may look.
"""

from dataclasses import dataclass
from pathlib import Path

from holon.config.fingerprint import config_fingerprint
from holon.config.load_settings import Settings
from holon.model.ids import AgentId
from holon.ports.journal import LogLevel
from holon.serve.access_plan import AccessRequest, plan_access


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeRequest:
    """What a service is started with, besides its settings. Paths are absolute."""

    access: AccessRequest
    token: str | None = None
    token_file: Path | None = None
    default_agent: AgentId
    workspace_dir: str | None = None
    log_level: LogLevel | None = None  # in place of the settings'

    @property
    def has_token_by_value(self) -> bool:
        """Whether a token was named, be it known here or not: nobody writes one down."""
        return self.access.has_own_token and self.token_file is None


def effective_fingerprint(settings: Settings, asked: ServeRequest) -> str:
    """Return what stands for everything the service runs with; raises BadAccessError."""
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
