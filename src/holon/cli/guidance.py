"""`holon skills`: manage the skills of an agent.

Owns:  listing, installing, uninstalling and checking skills.
Rule 1: a path is resolved here, relative to the current directory.
Rule 2: `check` exits with 1 if a skill has a problem.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console import exit_codes
from holon.cli.console.options import TEXT, with_home
from holon.cli.console.runtime_call import Target, agent_options

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_DESCRIPTION_CELLS_MAX: Final = 160  # also in a pipe: a table is for people, --json has it all


@click.group()
def skills() -> None:
    """List, install and uninstall the skills of an agent.

    \b
    Examples:
      holon skills list
      holon skills install ./pdf --agent builder
      holon skills check
    """


@skills.command("list")
@agent_options
def list_skills(target: Target) -> None:
    """List the skills of an agent, and mark the active ones.

    \b
    Examples:
      holon skills list
      holon skills list --agent builder
      holon skills list --json | jq -r '.skills[].path'
    """
    found = target.read("skills", part="skills")
    target.show(found, lambda: _table(found, target.agent_flag))


@skills.command()
@click.argument("name", metavar="NAME_OR_PATH", type=TEXT)
@click.option("--builtin", is_flag=True, help="NAME is a built-in skill.")
@click.option("--remote", is_flag=True, help="NAME is owner/repo@skill on GitHub.")
@click.option("--skill", metavar="SKILL", help="The skill, with --remote owner/repo.")
@click.option("--copy", is_flag=True, help="Copy a local skill instead of linking it.")
@click.option("--force", is_flag=True, help="Replace an existing skill, even if it was modified.")
@agent_options
def install(target: Target, /, *, name: str, skill: str | None, **flags: bool) -> None:
    """Install a skill into an agent's home, completely or not at all.

    Without --builtin or --remote, an existing directory is a local skill, owner/repo@skill a remote
    one, and any other name a built-in one.

    \b
    Examples:
      holon skills install github-review
      holon skills install ./skills/release-notes --agent builder
      holon skills install acme/skills@release-notes --remote
      holon skills install acme/skills --remote --skill release-notes
    """
    if flags["builtin"] and flags["remote"]:
        raise click.UsageError("a skill is either --builtin or --remote")
    if skill is not None and not flags["remote"]:
        raise click.UsageError("--skill goes with --remote")
    kind, named = _reference(name, skill, builtin=flags["builtin"], remote=flags["remote"])
    body = {"name": named, "kind": kind, "copy": flags["copy"], "force": flags["force"]}
    answer = target.control("skills/install", body, part="name")
    told = f"{answer.get('name')}: installed for {target.agent_id} in {answer.get('path')}"
    target.show(answer, lambda: [told])


@skills.command()
@click.argument("name", metavar="NAME", type=TEXT)
@click.option(
    "--force", is_flag=True, help="Also a modified skill, or one that Holon did not install."
)
@agent_options
def uninstall(target: Target, *, name: str, force: bool) -> None:
    """Remove a skill from an agent's home; of a linked one only the link.

    \b
    Examples:
      holon skills uninstall github-review
      holon skills uninstall release-notes --agent builder --force
    """
    answer = target.control("skills/uninstall", {"name": name, "force": force}, part="name")
    target.show(answer, lambda: [f"{name}: uninstalled for {target.agent_id}"])


@skills.command()
@agent_options
def check(target: Target) -> None:
    """Check the skills of an agent. Exits with 1 if there is a problem.

    The first existing folder of each scope is used. Other existing folders are listed, with the
    skills hidden in them.

    \b
    Examples:
      holon skills check
      holon skills check --agent builder --json | jq -r '.problems[]'
    """
    found = target.read("skills", part="problems")
    problems = found.get("problems") or []
    good = f"{_counted(len(found.get('skills') or ()), 'skill')}, no problem"
    hidden = [_passed_over_line(each) for each in found.get("passed_over") or ()]
    target.show(found, lambda: [*(problems or [good]), *hidden])
    sys.exit(exit_codes.FOUND_FAULTS if problems else exit_codes.OK)


def _passed_over_line(root: "JsonValue") -> str:
    names, count = root.get("hidden_skills") or (), root.get("hidden_count") or 0
    more = count - len(names)
    hides = f"hides {', '.join(map(str, names))}" if names else "hides no skill"
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"{root.get('path')} is ignored, because {root.get('used_path')} comes first:"
        f" it {hides}{rest}"
    )


def _reference(
    name: str, skill: str | None, *, builtin: bool, remote: bool
) -> tuple[str | None, str]:
    import os

    if builtin:
        return "builtin", name
    if remote:
        return "github", name if skill is None else f"{name}@{skill}"
    path = os.path.expanduser(name)
    is_named_inside = "/" in path and os.path.exists(path)  # its SKILL.md, say
    if path.startswith((".", "/")) or os.path.isdir(path) or is_named_inside:
        return "local", os.path.abspath(path)
    return None, name


def _table(found: "JsonValue", agent: str) -> Iterator[str]:
    from holon.cli.console.output import Column, record_lines
    from holon.cli.console.terminal_text import fitted, one_line

    def described(skill: "JsonValue") -> str:
        return fitted(one_line(str(skill.get("description"))), cells_max=_DESCRIPTION_CELLS_MAX)

    changed = {each.get("path") for each in found.get("installed") or () if each.get("is_changed")}
    columns = (
        Column("SKILL", "name"),
        Column("SCOPE", "scope"),
        Column("IN USE", lambda each: each.get("state") or "no"),
        Column("DESCRIPTION", described, shrinks=True),
    )
    yield from record_lines(columns, found.get("skills") or (), empty="no skills")
    if changed:
        yield f"{len(changed)} changed or made by hand in the agent's home"
    if problems := found.get("problems"):
        count = found.get("problems_count") or len(problems)
        check_them = with_home(f"holon skills check{agent}")
        yield f"{_counted(count, 'problem')}; see: {check_them}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
