"""The composition of the provider plane: settings and surroundings become a plane.

Owns:  the only place where the plane's parts are put together, and which variables of the process
       hold secrets. No logic; who is told when a provider fails, when a model is given a rest, and
       when it is back.
"""

from collections.abc import Mapping
from pathlib import Path

from holon.adapters.providers.credentials import (
    Credentials,
    register_stored_secrets,
    secret_variables,
)
from holon.adapters.providers.last_failures import LastFailureLog
from holon.adapters.providers.resolver import ProviderResolver, ResolverParts
from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.environment_names import CONTROL_TOKEN
from holon.config.load_settings import Settings
from holon.decide.providers.routes import Circuit, Closed
from holon.model.providers.models import ModelRef
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.runtime.providers.gate import LastFailure


def build_plane(
    settings: Settings, environ: Mapping[str, str], registry: SecretRegistry, clock: Clock
) -> ProviderResolver:
    """Return the plane a host with these settings uses. Close it at the end."""
    profiles = CredentialFile(settings.home).profiles
    credentials = Credentials(
        environ=environ,
        profiles=profiles,
        registry=registry,
        clock=clock,
        user_home=Path(environ.get("HOME", "/")),
    )
    register_stored_secrets(registry, environ, profiles, variables=_named_variables(settings))
    parts = ResolverParts(
        credentials=credentials, clock=clock, home=settings.home, redactor=registry
    )
    return ProviderResolver(settings.plane, parts)


def variables_to_forget(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables a process that has read them keeps better to itself."""
    signing = {each.secret_env for each in settings.webhooks.values() if each.secret_env}
    named = _named_variables(settings) | signing | {CONTROL_TOKEN}
    return secret_variables(environ, variables=named)


def _named_variables(settings: Settings) -> set[str]:
    named = (each.auth.env for each in settings.plane.providers.values() if each.auth is not None)
    return {name for name in named if name}


class ProviderNotes:
    """Passes news on to the notes a doctor reads, and to the journal."""

    def __init__(self, notes: LastFailureLog, journal: Journal) -> None:
        self._notes = notes
        self._journal = journal

    def failed(self, provider: str, failure: LastFailure) -> None:
        """A provider failed."""
        self._notes.take(provider, failure)
        self._journal.note(
            "provider_failed",
            failure.summary,
            level=LogLevel.WARNING,
            provider=provider,
            model_ref=failure.model_ref,
            failure_kind=failure.failure_kind,
        )

    def moved(self, route: ModelRef, circuit: Circuit) -> None:
        """A model is given a rest, or is back."""
        if isinstance(circuit, Closed):
            self._journal.note("provider_back", f"{route} is in use again", model_ref=str(route))
            return
        self._journal.note(
            "provider_rests",
            f"{route} failed too often in a row and is given a rest",
            level=LogLevel.WARNING,
            model_ref=str(route),
        )
