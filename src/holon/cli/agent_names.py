"""The names of agents, for who presses Tab.

Owns:  asking the runtime for them, quickly, and in silence when there is none.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_PATIENCE_S: Final = 0.5  # nobody waits longer for a Tab
_NAMES_COUNT_MAX: Final = 200


def complete_agent(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Offer the agents of the runtime that is meant."""
    del param
    from click.shell_completion import CompletionItem

    from holon.client.control_client import ControlClient
    from holon.client.endpoint import Wanted, find_endpoint
    from holon.model.errors import HolonError

    given = ctx.params
    wanted = Wanted(given.get("connect"), given.get("token"), given.get("token_file"))
    home = given.get("home") or os.environ.get("HOLON_HOME") or Path.home() / ".holon"
    try:
        endpoint = find_endpoint(Path(home).absolute(), wanted, os.environ)
        client = ControlClient(endpoint, timeout_s=_PATIENCE_S)
        found = client.get_json("/agents/list", query={"limit": _NAMES_COUNT_MAX})
        names = [str(each["identity"]["agent_id"]) for each in found]
    except (HolonError, OSError, LookupError, TypeError):  # a Tab is no place for a complaint
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
