"""A prompt for a person to read, for `holon debug prompt`.

Owns:  which parts of the view are shown, and in which order.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from holon.cli.tables import Column, fact_lines, indented, screen_cells, table_lines

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue

_COLUMNS: Final = (
    Column("SECTION"),
    Column("STABILITY"),
    Column("OUTCOME"),
    Column("BYTES", is_number=True),
    Column("OF", is_number=True),
    Column("TOKENS", is_number=True),
    Column("WHY", shrinks=True),
)


def prompt_lines(view: "JsonValue", *, full: bool) -> list[str]:
    """Return what surrounds a prompt, a row for each section, and their texts if asked for."""
    sections = view.get("sections") or ()
    rows = [_row(section) for section in sections]
    lines = [*fact_lines(_facts(view)), ""]
    lines += table_lines(_COLUMNS, rows, empty="there is no prompt", cells_max=screen_cells())
    if not full:
        return lines
    for section in sections:
        if section.get("text") is not None:
            lines += ["", f"── {section.get('name')}", *indented(str(section["text"]))]
    return lines


def _facts(view: "JsonValue") -> Iterator[tuple[str, object]]:
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


def _row(section: "JsonValue") -> tuple[object, ...]:
    ends = " ⏎cache" if section.get("cache_breakpoint") else ""
    pinned = " (pinned)" if section.get("pinned") else ""
    return (
        f"{section.get('name')}{pinned}",
        f"{section.get('stability')}{ends}",
        section.get("outcome"),
        section.get("sent_bytes"),
        section.get("full_bytes"),
        section.get("sent_tokens"),
        section.get("reason"),
    )
