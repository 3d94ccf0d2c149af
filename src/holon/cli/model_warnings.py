"""A word of warning about a model that was chosen.

Owns:  what is said of a model whose provider is not known, or that is not in the catalog, or whose
       price a cost budget would need to know.
Rule 1: a warning refuses nothing: what is missing may be configured next.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holon.adapters.providers.plane import ProviderPlane
    from holon.cli.plane_access import OpenedPlane
    from holon.model.model_ref import ModelRef


def warn_of_models(home: Path, refs: tuple[str, ...]) -> None:
    """Warn of each of these models that could not be used, or may be a slip."""
    from holon.cli.failure_report import say
    from holon.cli.plane_access import open_plane
    from holon.model.errors import HolonError
    from holon.model.model_ref import parse_model_ref

    plane = open_plane(home).plane
    for ref in refs:
        try:
            warn_if_unlisted(plane, parse_model_ref(ref))
        except HolonError as error:
            say(error)


def price_warnings(opened: "OpenedPlane") -> tuple[str, ...]:
    """Say which configured models a cost budget cannot bound."""
    from holon.adapters.providers.catalog import price_of
    from holon.decide.budget import unpriced_models, unpriced_text

    preference, budgets = opened.plane.preference, opened.settings.budgets
    asked = (str(ref) for ref in (preference.default, *preference.fallbacks))
    unpriced = unpriced_models(asked, budgets.agent, budgets.runtime, price_of=price_of)
    return (unpriced_text(unpriced),) if unpriced else ()


def warn_of_prices(home: Path) -> None:
    """Warn of a cost budget that cannot be kept."""
    from holon.cli.plane_access import open_plane

    for warning in price_warnings(open_plane(home)):
        click.echo(f"holon: {warning}", err=True)


def warn_if_unlisted(plane: "ProviderPlane", ref: "ModelRef") -> None:
    """Warn when nothing is known about a model of a network provider; raises without a provider."""
    from holon.adapters.providers.catalog import NETWORKLESS, ModelInfoSource
    from holon.cli.terminal_text import one_line

    if plane.route(ref.provider).transport in NETWORKLESS:
        return
    if plane.describe(ref).source is ModelInfoSource.UNKNOWN_FALLBACK:
        told = f"{one_line(str(ref))} is not in the catalog: is the name right?"
        click.echo(f"holon: {told} It gets default numbers.", err=True)
