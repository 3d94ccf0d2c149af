"""`holon memory`: search and read the memory of an agent.

Owns:  searching and reading memory, and managing its index.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.runtime_call import Target, agent_options, calls
from holon.model.limits import (
    MEMORY_HITS_COUNT_DEFAULT,
    MEMORY_HITS_COUNT_MAX,
    MEMORY_QUERY_CHARS_MAX,
    MEMORY_TEXT_CHARS_DEFAULT,
    MEMORY_TEXT_CHARS_MAX,
)

if TYPE_CHECKING:
    from holon.client.control_client import Query
    from holon.model.values import JsonValue

_LOOK_S: Final = 0.3  # between two looks at a rebuild
_NO_INDEX_YET: Final = (
    "there is no index yet"  # the reason that an index gives before it was filled
)


@click.group()
def memory() -> None:
    """Search the memory of an agent, and manage its index.

    \b
    Examples:
      holon memory search "release notes"
      holon memory status --agent builder
    """


@memory.command()
@click.argument("query")
@click.option(
    "--limit",
    type=click.IntRange(1, MEMORY_HITS_COUNT_MAX),
    default=MEMORY_HITS_COUNT_DEFAULT,
    show_default=True,
    help="How many results to show at most.",
)
@click.option("--all-workspaces", is_flag=True, help="Include results of other workspaces.")
@agent_options
def search(target: Target, *, query: str, limit: int, all_workspaces: bool) -> None:
    """Search an agent's notes, results, episodes, work items, tasks and commands.

    \b
    Examples:
      holon memory search "staging certificate"
      holon memory search 证书续期 --agent builder --all-workspaces
      holon memory search rollback --json | jq -r '.results[].source_ref'
    """
    _require_text(query, "the query", hint='say what to look for: holon memory search "…"')
    asked: Query = {
        "query": query,
        "limit": limit,
        "include_all_workspaces": "true" if all_workspaces else "false",
    }
    answer = target.read("search", asked, part="results")
    target.show(answer, lambda: _hit_lines(answer))


@memory.command()
@click.argument("source_ref", metavar="REF")
@click.option(
    "--max-chars",
    type=click.IntRange(1, MEMORY_TEXT_CHARS_MAX),
    default=MEMORY_TEXT_CHARS_DEFAULT,
    show_default=True,
    help="How many characters to show at most.",
)
@agent_options
def get(target: Target, *, source_ref: str, max_chars: int) -> None:
    """Show the exact text behind a search result.

    \b
    Examples:
      holon memory get brief:brief_01hx
      holon memory get agent_memory:self --json | jq -r .content
    """
    _require_text(source_ref, "REF", hint="search first, and copy the reference of a result")
    asked: Query = {"source_ref": source_ref, "max_chars": max_chars}
    answer = target.read("memory/get", asked, part="content")
    target.show(answer, lambda: _text_lines(answer))


@memory.command()
@calls(
    "GET memory/status",
    part="state",
    lines=lambda found: [_status_line(found), *_note_lines(found)],
)
def status() -> None:
    """Show the state of an agent's memory index.

    The first search creates the index. Memory files that cannot be searched are listed.

    \b
    Examples:
      holon memory status --agent builder
      holon memory status --json | jq .behind_count
    """


@memory.command()
@click.option("--no-wait", is_flag=True, help="Do not wait until the index is complete.")
@agent_options
def rebuild(target: Target, *, no_wait: bool) -> None:
    """Rebuild an agent's memory index. No memory is lost.

    \b
    Examples:
      holon memory rebuild
      holon memory rebuild --agent builder --no-wait --json | jq .index.state
    """
    answer = target.control("memory/rebuild", part="index")
    if not no_wait:
        answer = {**answer, "index": _watched(target, answer["index"])}
    target.show(answer, lambda: [_status_line(answer["index"])])


def _require_text(text: str, what: str, *, hint: str) -> None:
    """Refuse arguments that the runtime would refuse."""
    from holon.model.errors import BadInputError

    if not text.strip():
        raise BadInputError(f"{what} is empty", hint=hint)
    if len(text) > MEMORY_QUERY_CHARS_MAX:
        raise BadInputError(
            f"{what} is {len(text)} characters long",
            hint=f"use at most {MEMORY_QUERY_CHARS_MAX} characters; a few words find most",
        )


def _watched(target: Target, index: "JsonValue") -> "JsonValue":
    """Poll the rebuild until it is complete; print the progress."""
    import time

    while index.get("state") != "ready":
        if not target.as_json:
            click.echo(_status_line(index), err=True)
        time.sleep(_LOOK_S)
        index = target.read("memory/status", part="state")
    return index


def _hit_lines(answer: "JsonValue") -> Iterator[str]:
    for hit in answer["results"]:
        yield f"{hit.get('source_ref')}  [{hit.get('authority_class')}]  {hit.get('title')}"
        yield f"    {hit.get('snippet')}"
    if not answer["results"]:
        yield "nothing found"
    yield from _note_lines(answer)
    if (answer.get("index") or {}).get("state") != "ready":
        yield _status_line(answer["index"])


def _note_lines(answer: "JsonValue") -> Iterator[str]:
    for note in answer.get("notes") or ():
        yield f"note: {note}"


def _text_lines(answer: "JsonValue") -> Iterator[str]:
    yield f"{answer.get('source_ref')}  [{answer.get('authority_class')}]  {answer.get('title')}"
    yield ""
    yield from str(answer["content"]).splitlines()
    if answer.get("truncated"):
        yield "… there is more: see --max-chars"


def _status_line(index: "JsonValue") -> str:
    if index.get("reason") == _NO_INDEX_YET and not index.get("documents_count"):
        return f"{_NO_INDEX_YET}: the first search makes it"
    line = f"{index.get('state')}: {index.get('documents_count')} texts, {index.get('bytes')} bytes"
    if index.get("behind_count"):
        line += f", {index.get('behind_count')} records to go"
    return line
