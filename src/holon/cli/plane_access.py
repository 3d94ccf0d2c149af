"""How commands that look at providers come by them.

Owns:  opening a home's settings and the provider plane a host would build from them.
Rule 1: a configuration with faults can still be looked at: what fits is used, and each fault is
        handed out as a sentence. So is each variable that looks like a slip.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holon.adapters.providers.plane import ProviderPlane
    from holon.config.load_settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedPlane:
    """A home's settings and its provider plane."""

    settings: "Settings"
    plane: "ProviderPlane"
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def open_plane(home: Path) -> OpenedPlane:
    """Read a home's settings and build the plane a host would use."""
    # Imported here: these take most of the start-up time of the program.
    from holon.adapters.system.clock import SystemClock
    from holon.adapters.system.secrets import SecretRegistry
    from holon.config.environment_names import unknown_names
    from holon.config.load_settings import inspect_settings
    from holon.config.settings import VARIABLES
    from holon.serve.provider_plane import build_plane

    environ = dict(os.environ)
    inspection = inspect_settings(home, environ)
    plane = build_plane(inspection.settings, environ, SecretRegistry(), SystemClock())
    faults = tuple(fault.message for fault in inspection.faults)
    warnings = tuple(
        f"{name} is not a variable Holon reads; did you mean {meant}?"
        for name, meant in unknown_names(environ, VARIABLES).items()
    )
    return OpenedPlane(settings=inspection.settings, plane=plane, faults=faults, warnings=warnings)
