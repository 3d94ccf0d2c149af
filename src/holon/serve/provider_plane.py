"""The composition of the provider plane: settings and surroundings become a plane.

Owns:  the only place where the plane's parts are put together. No logic.
"""

from collections.abc import Mapping
from pathlib import Path

from holon.adapters.providers.credentials import Credentials
from holon.adapters.providers.kept_secrets import learn_kept_secrets
from holon.adapters.providers.plane import PlaneParts, ProviderPlane
from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings
from holon.ports.clock import Clock


def build_plane(
    settings: Settings, environ: Mapping[str, str], registry: SecretRegistry, clock: Clock
) -> ProviderPlane:
    """Return the plane a host with these settings uses. Close it at the end."""
    profiles = CredentialFile(settings.home).profiles
    credentials = Credentials(
        environ=environ,
        profiles=profiles,
        registry=registry,
        clock=clock,
        user_home=Path(environ.get("HOME", "/")),
    )
    named = (each.auth.env for each in settings.plane.providers.values() if each.auth is not None)
    learn_kept_secrets(registry, environ, profiles, variables={name for name in named if name})
    parts = PlaneParts(credentials=credentials, clock=clock, home=settings.home, redactor=registry)
    return ProviderPlane(settings.plane, parts)
