"""The composition of the provider plane: settings and surroundings become a plane.

Owns:  the only place where the plane's parts are put together. No logic.
"""

from collections.abc import Mapping
from pathlib import Path

from holon.adapters.providers.credentials import Credentials
from holon.adapters.providers.plane import PlaneParts, ProviderPlane
from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings
from holon.ports.clock import Clock


def build_plane(
    settings: Settings, environ: Mapping[str, str], registry: SecretRegistry, clock: Clock
) -> ProviderPlane:
    """Return the plane a host with these settings uses. Close it at the end."""
    credentials = Credentials(
        environ=environ,
        profiles=CredentialFile(settings.home).profiles,
        registry=registry,
        clock=clock,
        user_home=Path(environ.get("HOME", "/")),
    )
    parts = PlaneParts(credentials=credentials, clock=clock, home=settings.home, redactor=registry)
    return ProviderPlane(settings.plane, parts)
