"""Opens the settings and providers of a home, and warns of unusable models.

Owns:  the settings with the provider stack a host would build from them; warnings about a model
       whose provider is unknown, that is not in the catalog, or whose price a cost budget needs.
Rule 1: an invalid configuration can still be inspected: valid values are used, and each fault is
        reported. So is each variable that looks misspelled.
Rule 2: a warning refuses nothing: the missing part may be configured next.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holon.adapters.providers.resolver import ProviderResolver
    from holon.config.load_settings import Settings
    from holon.model.providers.models import ModelRef


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderAccess:
    """A home's settings and its model providers."""

    settings: "Settings"
    plane: "ProviderResolver"
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def open_provider_access(home: Path) -> ProviderAccess:
    """Read a home's settings and build the model providers a host would use."""
    # Imported here: these take most of the start-up time of the program.
    from holon.adapters.system.clock import SystemClock
    from holon.adapters.system.secrets import SecretRegistry
    from holon.config.environment_names import unknown_names
    from holon.config.load_settings import inspect_settings
    from holon.config.settings import VARIABLES
    from holon.serve.providers import build_plane

    environ = dict(os.environ)
    inspection = inspect_settings(home, environ)
    plane = build_plane(inspection.settings, environ, SecretRegistry(), SystemClock())
    faults = tuple(fault.message for fault in inspection.faults)
    warnings = tuple(
        f"{name} is not a Holon variable; did you mean {meant}?"
        for name, meant in unknown_names(environ, VARIABLES).items()
    )
    return ProviderAccess(
        settings=inspection.settings, plane=plane, faults=faults, warnings=warnings
    )


def warn_of_models(home: Path, refs: tuple[str, ...]) -> None:
    """Warn of each of these models that is unusable or looks misspelled."""
    from holon.cli.console.failures import say
    from holon.model.errors import HolonError
    from holon.model.providers.models import parse_model_ref

    plane = open_provider_access(home).plane
    for ref in refs:
        try:
            warn_if_unlisted(plane, parse_model_ref(ref))
        except HolonError as error:
            say(error)


def price_warnings(opened: "ProviderAccess") -> tuple[str, ...]:
    """Return warnings about models without a price under a cost budget."""
    from holon.adapters.providers.catalog import price_of
    from holon.decide.budgets.budget import unpriced_models, unpriced_text

    preference, budgets = opened.plane.preference, opened.settings.budgets
    asked = (str(ref) for ref in (preference.default, *preference.fallbacks))
    unpriced = unpriced_models(asked, budgets.agent, budgets.runtime, price_of=price_of)
    return (unpriced_text(unpriced),) if unpriced else ()


def warn_of_prices(home: Path) -> None:
    """Warn of a cost budget that cannot be enforced."""
    for warning in price_warnings(open_provider_access(home)):
        click.echo(f"holon: {warning}", err=True)


def warn_if_unlisted(plane: "ProviderResolver", ref: "ModelRef") -> None:
    """Warn of a model that is not in the catalog; raises for an unknown provider."""
    from holon.adapters.providers.catalog import NETWORKLESS, ModelInfoSource
    from holon.cli.console.terminal_text import one_line

    if plane.route(ref.provider).transport in NETWORKLESS:
        return
    if plane.describe(ref).source is ModelInfoSource.UNKNOWN_FALLBACK:
        told = f"{one_line(str(ref))} is not in the catalog; check the name."
        click.echo(f"holon: {told} It gets default limits.", err=True)
