"""`holon template`: manage the templates agents are created from.

Owns:  the output of these commands; completion of template arguments, and the forms of a template
       argument beyond those the runtime accepts. The templates are stored by adapters/files.
Rule 1: the commands work on the user's files only and need no runtime.
Rule 2: later changes of a template do not affect agents created from it.
Rule 3: an invalid template name is bad usage; a template that is missing, exists already or cannot
        be used is a failure, here as on creating an agent.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.console import exit_codes
from holon.cli.console.options import echo_json, home_option, json_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from holon.adapters.files.templates import (
        ListedTemplate,
        ResolvedTemplate,
        TemplateStore,
        UnusableSkill,
    )
    from holon.model.guidance import SkillRef
    from holon.model.values import JsonValue


def complete_template(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete the user's templates."""
    del ctx, param
    import os

    from click.shell_completion import CompletionItem

    from holon.adapters.system.directories import templates_root, user_home_of

    home = user_home_of(os.environ)
    try:
        names = [] if home is None else sorted(os.listdir(templates_root(home)))
    except OSError:
        names = []
    return [
        CompletionItem(name)
        for name in names
        if name.startswith(incomplete) and not name.startswith(".")
    ]


def as_address(text: str) -> str:
    """Return a URL without a trailing slash."""
    return text.rstrip("/") if _is_address(text) else text


def as_selector(text: str) -> str:
    """Normalize a template argument; a path is resolved against the current directory."""
    return as_source(text) if "/" in text or text.startswith(".") else text


def as_source(text: str) -> str:
    """Normalize a source argument: a bare name is a directory, not a template id."""
    import os

    if _is_address(text):
        return as_address(text)
    try:
        return os.path.abspath(text)
    except FileNotFoundError:
        raise click.UsageError(
            "the current directory no longer exists; give the absolute path of the template"
        ) from None


def _is_address(text: str) -> bool:
    return "://" in text or text.lower().startswith(("http:", "https:", "github.com/"))


@click.group()
def template() -> None:
    """List, install and remove the templates of agents.

    A template is a directory under ~/.agents/templates with an AGENTS.md and optionally a
    skills.json. Its name is its id.

    \b
    Examples:
      holon template list
      holon template info holon-reviewer
      holon template install ./reviewer --as our-reviewer
    """


@template.command("list")
@home_option
@json_option
def list_templates(home: Path, as_json: bool) -> None:
    """List your templates, including the built-in ones.

    The reasons for unusable templates are listed below the table.

    \b
    Examples:
      holon template list
      holon template list --json | jq -r '.templates[].template_id'
    """
    import anyio

    found = anyio.run(_store(home, seeded=True).checked_listing)
    if as_json:
        echo_json({"templates": [_described(each) for each in found]})
        return
    from holon.cli.console.output import Column, screen_cells, table_lines
    from holon.cli.console.terminal_text import plain

    columns = (
        Column("TEMPLATE"),
        Column("FROM"),
        Column("STATE"),
        Column("SUMMARY", shrinks=True),
    )
    rows = [(each.template_id, _origin(each), _state(each), each.summary) for each in found]
    for line in table_lines(columns, rows, empty="no templates", cells_max=screen_cells()):
        click.echo(line)
    for each in found:
        if each.problem is not None:
            click.echo(f"{each.template_id} is unusable: {plain(each.problem)}")


@template.command()
@click.argument("selector", metavar="TEMPLATE", shell_complete=complete_template)
@home_option
@json_option
def info(selector: str, home: Path, as_json: bool) -> None:
    """Show what an agent created from a template would get.

    TEMPLATE is a template id, a path with a slash, or a GitHub tree URL, which is fetched. Skills
    that are not found on this machine are listed; GitHub is not queried for them.

    \b
    Exit codes:
      0  success
      1  the template does not exist, or it or one of its skills is unusable
      2  TEMPLATE is invalid

    \b
    Examples:
      holon template info holon-developer
      holon template info ./ops
      holon template info /srv/templates/ops --json | jq .skills
      holon template info https://github.com/acme/agents/tree/main/templates/ci
    """
    import anyio

    from holon.decide.agents.templates import parse_selector

    selector = as_selector(selector)
    parse_selector(selector)
    with _failing(as_json=as_json):
        found, unusable = anyio.run(_looked_at, _store(home, seeded=True), selector)
    if as_json:
        missing = [{"skill": _skill(each.ref), "problem": each.problem} for each in unusable]
        told = {"unusable_skills": missing, "agents_md": found.content.agents_md}
        echo_json(_facts(found) | told)
    else:
        _show(found, unusable)
    if unusable:
        sys.exit(exit_codes.FOUND_FAULTS)


def _show(found: "ResolvedTemplate", unusable: "Sequence[UnusableSkill]") -> None:
    from holon.cli.console.output import fact_lines, indented
    from holon.cli.console.terminal_text import plain

    facts = _facts(found) | {"skills": ", ".join(_skills(found)) or "none"}
    for line in (*fact_lines(facts.items()), "", *indented(found.content.agents_md)):
        click.echo(line)
    for each in unusable:
        click.echo(f"holon: {_skill(each.ref)} is unusable: {plain(each.problem)}", err=True)
    if unusable:
        click.echo("       no agent can be created from this template", err=True)


@template.command()
@click.argument("source", metavar="SOURCE")
@click.option("--as", "name", help="The id of the template.  [default: the name of the directory]")
@home_option
@json_option
def install(source: str, name: str | None, home: Path, as_json: bool) -> None:
    """Install a template from a directory or a GitHub tree.

    An existing template is never replaced: its id is refused. So is a template whose skills are not
    found on this machine; GitHub is not queried for skills.

    \b
    Exit codes:
      0  the template is installed
      1  the template does not exist, its id is in use, or it or one of its skills is unusable
      2  SOURCE or the id is invalid

    \b
    Examples:
      holon template install ./templates/ops
      holon template install https://github.com/acme/agents/tree/v2/templates/ci --as acme-ci
    """
    import anyio

    from holon.adapters.files.templates import installed_id

    source = as_source(source)
    installed_id(source, name=name)

    async def carried_out() -> "ListedTemplate":
        return await _store(home, seeded=False).install(source, name=name)

    with _failing(as_json=as_json):
        made = anyio.run(carried_out)
    if as_json:
        echo_json({"template": _described(made)})
    else:
        click.echo(f"{made.template_id} is in {made.path}")


@template.command()
@click.argument("template_id", metavar="ID", shell_complete=complete_template)
@home_option
@json_option
def remove(template_id: str, home: Path, as_json: bool) -> None:
    """Delete one of your templates. Agents created from it are not affected.

    Built-in templates are restored whenever Holon starts and whenever templates are listed or
    shown: removing one of them only discards your changes to it.

    \b
    Examples:
      holon template remove ops
    """
    from holon.adapters.files.builtin_templates import builtin_template
    from holon.decide.agents.templates import parse_template_id

    parse_template_id(template_id)
    with _failing(as_json=as_json):
        path = _store(home, seeded=False).remove(template_id)
    comes_back = builtin_template(template_id) is not None
    if as_json:
        told = {"template_id": template_id, "path": str(path), "removed": True}
        echo_json({**told, "comes_back": comes_back})
    elif comes_back:
        click.echo(f"{template_id} is removed; it is built in and will be restored")
    else:
        click.echo(f"{template_id} is removed")


@contextmanager
def _failing(*, as_json: bool) -> Iterator[None]:
    """Report an unusable template as a failure."""
    from holon.cli.console.failures import end_failed
    from holon.model.agents import BadTemplateError
    from holon.model.guidance import BadSkillRefError

    try:
        yield
    except (BadTemplateError, BadSkillRefError) as error:
        end_failed(error, exit_codes.FAILED, as_json=as_json)


def _store(home: Path, *, seeded: bool) -> "TemplateStore":
    from holon.config.load_settings import load_settings
    from holon.model.errors import BadInputError
    from holon.serve.agent_adapters import seed_user, template_store, user_files_of

    files = user_files_of(os.environ, load_settings(home, os.environ).github_base)
    if files is None:
        raise BadInputError("your home directory is unknown", hint="set HOME")
    for problem in seed_user(files) if seeded else ():
        click.echo(f"holon: {problem}", err=True)
    return template_store(files)


async def _looked_at(
    store: "TemplateStore", selector: str
) -> "tuple[ResolvedTemplate, tuple[UnusableSkill, ...]]":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="holon-template-") as scratch:
        found = await store.resolve(selector, scratch=Path(scratch))
    return found, await store.unusable_skills(found.content)


def _state(each: "ListedTemplate") -> str:
    return "ready" if each.problem is None else "unusable"


def _origin(each: "ListedTemplate") -> str:
    if not each.is_builtin:
        return "you"
    return "holon, edited" if each.is_modified else "holon"


def _described(each: "ListedTemplate") -> "JsonValue":
    return {
        "template_id": each.template_id,
        "path": each.path,
        "summary": each.summary,
        "skills": list(each.skills),
        "builtin": each.is_builtin,
        "modified": each.is_modified,
        "problem": each.problem,
    }


def _facts(found: "ResolvedTemplate") -> "dict[str, JsonValue]":
    return {
        "selector": found.selector,
        "kind": found.kind,
        "source": found.source,
        "ref": found.ref,
        "commit": found.commit,
        "agents_md_sha256": found.content.agents_md_sha256,
        "skills_json_sha256": found.content.skills_json_sha256,
        "skills": list(_skills(found)),
    }


def _skills(found: "ResolvedTemplate") -> tuple[str, ...]:
    return tuple(map(_skill, found.content.skill_refs))


def _skill(ref: "SkillRef") -> str:
    return f"{ref.kind}:{ref.source}"
