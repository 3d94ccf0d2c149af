"""`holon workspace`: the workspaces of an agent.

Owns:  listing, attaching, leaving and forgetting workspaces.
Rule 1: a path is resolved here, relative to the current directory; the runtime follows symlinks,
        and the response shows the result.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holon.cli.console.options import TEXT, PathParam
from holon.cli.console.runtime_call import Target, agent_options

if TYPE_CHECKING:
    from holon.model.values import JsonValue


@click.group()
def workspace() -> None:
    """List and choose the directories an agent works in.

    \b
    Examples:
      holon workspace list --agent builder
      holon workspace attach ~/src/site --agent builder
      holon workspace exit --agent builder
    """


@workspace.command("list")
@agent_options
def list_workspaces(target: Target) -> None:
    """List the workspaces of an agent, and mark the current one.

    \b
    Examples:
      holon workspace list --agent builder
      holon workspace list --json | jq .active_workspace_entry.cwd
    """
    found = target.read("state", part="workspace")["workspace"]
    target.show(found, lambda: _table(found))


@workspace.command()
@click.argument("path", metavar="PATH", type=PathParam())
@agent_options
def attach(target: Target, *, path: str) -> None:
    """Set the directory an agent works in, from its next command on.

    The workspace is the git repository that contains the directory, or else the directory itself.
    Running commands are not affected.

    \b
    Examples:
      holon workspace attach .
      holon workspace attach ~/src/site --agent builder
      holon workspace attach . --json | jq -r .workspace.active_workspace_entry.workspace_id
    """
    import os

    answer = target.control("workspace/attach", {"path": os.path.abspath(path)}, part="workspace")
    target.show(answer, lambda: [_told(target, answer["workspace"])])


@workspace.command("exit")
@agent_options
def leave(target: Target) -> None:
    """Leave the current workspace for the agent's home; it stays attached.

    \b
    Examples:
      holon workspace exit --agent builder
    """
    answer = target.control("workspace/exit", part="workspace")
    target.show(answer, lambda: [_told(target, answer["workspace"])])


@workspace.command()
@click.argument("workspace_id", metavar="ID", type=TEXT)
@agent_options
def detach(target: Target, *, workspace_id: str) -> None:
    """Remove a workspace the agent is not in from its list. No file is changed.

    \b
    Examples:
      holon workspace detach ws_0f1e2d3c4b5a69788796
    """
    body = {"workspace_id": workspace_id}
    answer = target.control("workspace/detach", body, part="workspace")
    target.show(answer, lambda: [f"{workspace_id}: detached from {target.agent_id}"])


def _told(target: Target, state: "JsonValue") -> str:
    entry = state.get("active_workspace_entry") or {}
    return f"{target.agent_id} works in {entry.get('cwd')} ({entry.get('workspace_id')})"


def _table(state: "JsonValue") -> Iterator[str]:
    from holon.cli.console.output import Column, record_lines

    entry = state.get("active_workspace_entry") or {}
    active = entry.get("workspace_id")
    columns = (
        Column("WORKSPACE", "workspace_id"),
        Column("ACTIVE", lambda each: each.get("workspace_id") == active),
        Column("REPOSITORY", "repo_name"),
        Column("ANCHOR", "workspace_anchor", shrinks=True),
    )
    yield from record_lines(columns, state.get("attached_workspaces") or (), empty="no workspaces")
    yield f"works in {entry.get('cwd')}"
