"""`holon debug`: inspects a home.

Owns:  the output and exit codes of the debug commands.
Rule 1: no command here changes a home, whether or not a host runs on it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.console import exit_codes
from holon.cli.console.completion import complete_agent
from holon.cli.console.options import echo_json, home_option, json_option
from holon.cli.console.runtime_call import Target, agent_options

if TYPE_CHECKING:
    from holon.adapters.sqlite.check.facts import CheckReport
    from holon.model.values import JsonValue


@click.group()
def debug() -> None:
    """Inspect a home without changing it.

    \b
    Examples:
      holon debug check
      holon debug prompt "Review the last change."
      holon debug latency --agent builder
    """


@debug.command()
@home_option
@json_option
def check(home: Path, as_json: bool) -> None:
    """Check the twelve invariants of a database, read-only.

    Safe while a host is running, and on a copy of a home. Prints what was checked, or one line per
    violation: invariant, subject and detail.

    \b
    Exit codes:
      0  every invariant holds
      1  there are violations, one line each
      2  there is no database, it is not Holon's, or a newer Holon wrote it

    \b
    With --json:
      {"clean": false, "database": "…/runtime.sqlite", "schema_version": 2,
       "as_of": "2026-01-01T00:00:00Z", "counts": {"agents": 1, "messages": 7, …},
       "violations": [{"invariant": "I5", "subject": "main",
                       "detail": "event_seq jumps from 4 to 6"}]}

    \b
    Examples:
      holon debug check
      holon debug check --home /srv/holon
      holon debug check --json | jq .violations
    """
    report = _checked(home, as_json=as_json)
    click.echo(_as_json(report) if as_json else _as_text(report))
    if not report.is_clean:
        sys.exit(exit_codes.FOUND_FAULTS)


def _checked(home: Path, *, as_json: bool) -> "CheckReport":
    # Imported here: the store and the model take most of the start-up time of this program.
    from holon.adapters.sqlite.check.checker import check_database
    from holon.adapters.sqlite.database.home_lock import database_path
    from holon.cli.console.failures import end_failed
    from holon.model.errors import HolonError, HomeUnusableError

    try:
        return check_database(database_path(home))
    except HolonError as error:
        end_failed(error, exit_codes.UNUSABLE, as_json=as_json)
    except OSError as error:
        raise HomeUnusableError(
            f"{error.filename or home} cannot be read: {error.strerror}"
        ) from None


@debug.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 50),
    default=10,
    show_default=True,
    help="How many of the newest turns to show.",
)
@click.option(
    "--events-limit",
    type=click.IntRange(1, 100_000),
    default=5_000,
    show_default=True,
    help="How many of the agent's newest events to read.",
)
@click.option(
    "--agent",
    envvar="HOLON_AGENT_ID",
    metavar="NAME",
    shell_complete=complete_agent,
    default="main",
    show_default="$HOLON_AGENT_ID, or main",
    help="The agent.",
)
@home_option
@json_option
def latency(home: Path, as_json: bool, agent: str, limit: int, events_limit: int) -> None:
    """Show where the time of an agent's newest turns was spent.

    Queue, context, provider, tools and cleanup, computed from the agent's stored events; read-only,
    with or without a running runtime.

    \b
    Exit codes:
      0  success
      1  the database cannot be read
      2  there is no database, it is not Holon's, or a newer Holon wrote it

    \b
    Examples:
      holon debug latency
      holon debug latency --agent builder --limit 50
      holon debug latency --json | jq .parts.provider.p95_ms
    """
    from holon.cli.home.latency import latency_lines, read_latency
    from holon.wire.codec import json_of

    report = read_latency(home.absolute(), agent, limit=limit, events_limit=events_limit)
    if as_json:
        echo_json({"agent_id": agent, **json_of(report)})
        return
    for line in latency_lines(report, agent):
        click.echo(line)


@debug.command("prompt")
@click.argument("text", required=False)
@click.option("--full", is_flag=True, help="Show the text of every section, not only its size.")
@agent_options
def prompt_frame(target: Target, text: str | None, full: bool) -> None:
    """Show the prompt an agent would get now; nothing is sent.

    With TEXT it is the prompt for this text; without, for the message of the running turn or the
    next one in the queue. Sections are listed in the order they are sent, each with its size, its
    stability, whether a cached prefix ends there, and its outcome: full, compact, truncated or
    omitted, with the reason.

    \b
    Exit codes:
      0  success
      1  no runtime runs, or it has no such agent
      2  TEXT is empty

    \b
    With --json: one object with agent_home, workspace_id, workspace_anchor, execution_root, cwd,
    execution_policy, loaded_instructions (sources of guidance), tools, budget, history, cache,
    sections (with their text) and over_budget.

    \b
    Examples:
      holon debug prompt
      holon debug prompt "fix the failing test" --full
      holon debug prompt --agent builder --json | jq '.sections[] | {name, outcome, sent_tokens}'
    """
    from holon.model.errors import BadInputError

    if text is not None and not text.strip():
        raise BadInputError(
            "TEXT is empty", hint="leave it out to see the prompt for what comes next"
        )
    answer = target.control("debug-prompt", {"text": text}, part="sections")
    target.show(answer, lambda: _prompt_lines(answer, full=full))


def _prompt_lines(view: "JsonValue", *, full: bool) -> list[str]:
    """Return the sections of a prompt frame as rows, with their texts if requested."""
    from holon.cli.console.output import Column, fact_lines, indented, record_lines

    columns = (
        Column("SECTION", _section_name),
        Column("STABILITY", _section_stability),
        Column("OUTCOME", "outcome"),
        Column("BYTES", "sent_bytes", is_number=True),
        Column("OF", "full_bytes", is_number=True),
        Column("TOKENS", "sent_tokens", is_number=True),
        Column("WHY", "reason", shrinks=True),
    )
    sections = view.get("sections") or ()
    lines = [*fact_lines(_prompt_facts(view)), ""]
    lines += record_lines(columns, sections, empty="there is no prompt")
    if not full:
        return lines
    for section in sections:
        if section.get("text") is not None:
            lines += ["", f"── {section.get('name')}", *indented(str(section["text"]))]
    return lines


def _prompt_facts(view: "JsonValue") -> Iterator[tuple[str, object]]:
    for name in ("agent_id", "model", "agent_home", "workspace_id", "workspace_anchor"):
        yield name, view.get(name)
    for name in ("execution_root", "cwd"):
        yield name, view.get(name)
    for line in view.get("execution_policy") or ():
        yield "policy", line
    for file in view.get("loaded_instructions") or ():
        cut = ", truncated" if file.get("truncated") else ""
        yield "guidance", f"{file.get('source')} {file.get('kind')} {file.get('path')}{cut}"
    for problem in view.get("problems") or ():
        yield "problem", problem
    yield "tools", ", ".join(map(str, view.get("tools") or ()))
    yield "budget", _budget(view.get("budget") or {})
    history = view.get("history") or {}
    yield "history", f"{history.get('turn_count')} turns, {history.get('message_count')} messages"
    cache = view.get("cache") or {}
    yield "cache key", cache.get("prompt_cache_key")
    yield "fingerprint", cache.get("context_fingerprint")
    if (over := view.get("over_budget")) is not None:
        needed, room = over.get("needed_tokens"), over.get("share_tokens")
        yield "over budget", f"{over.get('share')}: needs {needed} tokens, has {room}"


def _budget(budget: "JsonValue") -> str:
    used, room = budget.get("frame_tokens"), budget.get("prompt_tokens_max")
    return f"{used} of {room} tokens, beside {budget.get('tools_tokens')} for tools (estimates)"


def _section_name(section: "JsonValue") -> str:
    return f"{section.get('name')}{' (pinned)' if section.get('pinned') else ''}"


def _section_stability(section: "JsonValue") -> str:
    return f"{section.get('stability')}{' ⏎cache' if section.get('cache_breakpoint') else ''}"


def _as_text(report: "CheckReport") -> str:
    if not report.is_clean:
        return "\n".join(str(violation) for violation in report.violations)
    counted = ", ".join(f"{count} {table}" for table, count in report.counts.items())
    return f"clean: {counted.replace('_', ' ')}"


def _as_json(report: "CheckReport") -> str:
    from holon.wire.codec import encode, json_of

    whole = {"clean": report.is_clean, "as_of": None, "violations": [], **json_of(report)}
    return encode(whole).decode()
