"""Builds the model provider stack from settings and environment.

Owns:  the construction of its parts; which environment variables hold secrets; the journal entries
       about provider failures and circuits. No other logic.
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
from holon.decide.providers.routes import Circuit, CircuitClosed
from holon.model.providers.models import ModelRef
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.runtime.providers.gate import LastFailure


def build_plane(
    settings: Settings, environ: Mapping[str, str], registry: SecretRegistry, clock: Clock
) -> ProviderResolver:
    """Build the model provider of a host with these settings. The caller closes it."""
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
    """Return the variables to remove from the environment of a process that has read them."""
    signing = {each.secret_env for each in settings.webhooks.values() if each.secret_env}
    named = _named_variables(settings) | signing | {CONTROL_TOKEN}
    return secret_variables(environ, variables=named)


def _named_variables(settings: Settings) -> set[str]:
    named = (each.auth.env for each in settings.plane.providers.values() if each.auth is not None)
    return {name for name in named if name}


class ProviderJournal:
    """Records provider failures for the doctor and in the journal."""

    def __init__(self, notes: LastFailureLog, journal: Journal) -> None:
        self._notes = notes
        self._journal = journal

    def failed(self, provider: str, failure: LastFailure) -> None:
        """Record the failure of a provider."""
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
        """Log that the circuit of a model opened or closed."""
        if isinstance(circuit, CircuitClosed):
            self._journal.note(
                "provider_back",
                f"the circuit of {route} closed: it is in use again",
                model_ref=str(route),
            )
            return
        self._journal.note(
            "provider_rests",
            f"the circuit of {route} opened after repeated failures",
            level=LogLevel.WARNING,
            model_ref=str(route),
        )
