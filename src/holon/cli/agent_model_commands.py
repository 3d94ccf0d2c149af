"""`holon agent model`: which model an agent is given.

Owns:  reading, choosing and giving back an agent's own model, from a terminal.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from holon.cli.completed_names import complete_model
from holon.cli.runtime_call import Target, agent_options

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue


@click.group()
def model() -> None:
    """See and choose the model of an agent.

    \b
    Examples:
      holon agent model get --agent builder
      holon agent model set anthropic/claude-sonnet-5-5 --agent builder
      holon agent model clear --agent builder
    """


@model.command("get")
@agent_options
def get(target: Target) -> None:
    """Say which model an agent is given, and whose choice that is.

    \b
    Examples:
      holon agent model get --agent builder
      holon agent model get --json | jq -r .effective_model
    """
    _show(target)


@model.command("set")
@click.argument("ref", metavar="MODEL", shell_complete=complete_model)
@agent_options
def set_(target: Target, *, ref: str) -> None:
    """Give an agent a model of its own, from its next turn on.

    A model that is not in the catalog is taken with a word of warning; one whose provider is not
    known, or cannot be used as it is configured, is not.

    \b
    Exit codes:
      0  it is set
      1  no runtime runs, or it has no such agent
      2  this names no model, or one the runtime cannot use

    \b
    Examples:
      holon agent model set anthropic/claude-sonnet-5-5 --agent builder
    """
    from holon.cli.model_warnings import warn_if_unlisted
    from holon.cli.plane_access import open_plane
    from holon.model.errors import HolonError
    from holon.model.model_ref import parse_model_ref

    named = parse_model_ref(ref)
    target.control("model", {"model": ref})
    _show(target)
    with suppress(HolonError):  # the runtime knows it, and this home's settings do not
        warn_if_unlisted(open_plane(target.home).plane, named)


@model.command("clear")
@agent_options
def clear(target: Target) -> None:
    """Give an agent the runtime's model back.

    \b
    Examples:
      holon agent model clear --agent builder
    """
    target.control("model/clear")
    _show(target)


def _show(target: Target) -> None:
    found = {"agent_id": target.agent_id, **target.read("status", part="model")["model"]}
    target.show(found, lambda: _lines(found))


def _lines(found: "JsonValue") -> list[str]:
    from holon.cli.tables import fact_lines

    return fact_lines(
        [
            ("agent", found["agent_id"]),
            ("model", found.get("effective_model")),
            (
                "chosen by",
                {"agent_override": "you, for this agent"}.get(found.get("source"), "the runtime"),
            ),
            ("runtime's own", found.get("runtime_default_model")),
        ]
    )
