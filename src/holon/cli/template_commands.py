"""`holon template`: what agents are made from.

Owns:  the words and the JSON of these commands; templates are kept in adapters/files.
Rule 1: the commands work on files of the user alone: no runtime has to be there.
Rule 2: an agent that was made from a template does not notice what happens to it later.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.options import echo_json, home_option, json_option
from holon.cli.template_options import complete_template

if TYPE_CHECKING:
    from holon.adapters.files.template_store import ListedTemplate, ResolvedTemplate, TemplateStore
    from holon.model.json_value import JsonValue


@click.group()
def template() -> None:
    """See, add and remove the templates agents are made from.

    A template is a directory under ~/.agents/templates with an AGENTS.md and, if need be, a
    skills.json. Its name is its id.
    """


@template.command("list")
@home_option
@json_option
def list_templates(home: Path, as_json: bool) -> None:
    """List your templates, Holon's own among them.

    \b
    Examples:
      holon template list
      holon template list --json | jq -r '.templates[].template_id'
    """
    found = _store(home, seeded=True).listing()
    if as_json:
        echo_json({"templates": [_described(each) for each in found]})
        return
    from holon.cli.tables import Column, screen_cells, table_lines

    columns = (Column("TEMPLATE"), Column("FROM"), Column("SUMMARY", shrinks=True))
    rows = [(each.template_id, _origin(each), each.problem or each.summary) for each in found]
    for line in table_lines(columns, rows, empty="no templates", cells_max=screen_cells()):
        click.echo(line)


@template.command()
@click.argument("selector", metavar="TEMPLATE", shell_complete=complete_template)
@home_option
@json_option
def info(selector: str, home: Path, as_json: bool) -> None:
    """Show what an agent made from a template would be given.

    TEMPLATE is a template id, an absolute path, or a GitHub tree URL, which is fetched.

    \b
    Examples:
      holon template info holon-developer
      holon template info /srv/templates/ops --json | jq .skills
      holon template info https://github.com/acme/agents/tree/main/templates/ci
    """
    import anyio

    found = anyio.run(_resolved, _store(home, seeded=True), selector)
    if as_json:
        echo_json(_facts(found) | {"agents_md": found.content.agents_md})
        return
    from holon.cli.tables import fact_lines, indented

    facts = _facts(found) | {"skills": ", ".join(_skills(found)) or "none"}
    for line in (*fact_lines(facts.items()), "", *indented(found.content.agents_md)):
        click.echo(line)


@template.command()
@click.argument("source", metavar="SOURCE")
@click.option("--as", "name", help="The id it gets.  [default: the name of the directory]")
@home_option
@json_option
def install(source: str, name: str | None, home: Path, as_json: bool) -> None:
    """Copy a template among yours, from a directory or a GitHub tree.

    Nothing is replaced: an id that is taken is refused.

    \b
    Examples:
      holon template install ./templates/ops
      holon template install https://github.com/acme/agents/tree/v2/templates/ci --as acme-ci
    """
    import anyio

    if "://" not in source:
        source = os.path.abspath(source)  # completed here, where the operator stands

    async def carried_out() -> "ListedTemplate":
        return await _store(home, seeded=False).install(source, name=name)

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
    """Delete one of your templates. Agents made from it stay as they are.

    Holon puts its own templates back when it starts the next time.

    \b
    Examples:
      holon template remove ops
    """
    path = _store(home, seeded=False).remove(template_id)
    if as_json:
        echo_json({"template_id": template_id, "path": str(path), "removed": True})
    else:
        click.echo(f"{template_id} is removed")


def _store(home: Path, *, seeded: bool) -> "TemplateStore":
    from holon.config.load_settings import load_settings
    from holon.model.errors import BadInputError
    from holon.serve.identity_parts import seed_user, template_store, user_files_of

    files = user_files_of(os.environ, load_settings(home, os.environ).github_base)
    if files is None:
        raise BadInputError("nobody says where your home is", hint="set HOME")
    for problem in seed_user(files) if seeded else ():
        click.echo(f"holon: {problem}", err=True)
    return template_store(files)


async def _resolved(store: "TemplateStore", selector: str) -> "ResolvedTemplate":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="holon-template-") as scratch:
        return await store.resolve(selector, scratch=Path(scratch))


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
    return tuple(f"{ref.kind}:{ref.source}" for ref in found.content.skill_refs)
