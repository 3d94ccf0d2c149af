"""The page on tools: what each is for, what it takes, what it answers with, how it refuses.

Owns:  docs/reference/tools.md. Arguments come from the schemas the models are sent, prose from the
       guidance files, errors from the source, results from tool_results.toml, which a test compares
       with what the tools answer.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from holon.decide.providers.schemas import expected_form
from holon.model.values import JsonValue
from holon.tools.registry import ToolRegistry, builtin_tools, local_registry
from holon.tools.tool import Tool
from scripts.reference.tool_errors import ErrorSeen, Reached, errors_from

RESULTS: Final = Path(__file__).resolve().parent / "tool_results.toml"
SHARED_BY_ALL: Final = (
    ("holon.decide.turns.step", ()),
    ("holon.decide.turns.recovery", ("INTERRUPTED",)),
    ("holon.runtime.turns.tool_runner", ()),
    ("holon.tools.arguments", ("decode_arguments",)),
)
_BOUNDS: Final = (
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
)


class ResultField(NamedTuple):
    """One row of tool_results.toml."""

    name: str
    type: str
    says: str


class Results(NamedTuple):
    """The results of all tools, and the shapes they share."""

    tools: Mapping[str, tuple[ResultField, ...]]
    shapes: Mapping[str, tuple[ResultField, ...]]


@cache
def read_results() -> Results:
    """Read the rows."""
    found = tomllib.loads(RESULTS.read_text(encoding="utf-8"))
    parts = (
        {name: tuple(ResultField(*row) for row in rows) for name, rows in found[part].items()}
        for part in ("tools", "shapes")
    )
    return Results(*parts)


def tools_lines() -> Iterator[str]:
    """Yield the page's body."""
    registry, own = local_registry(), {spec.name for spec in builtin_tools().specs}
    yield from _overview(registry, own)
    yield from _envelope_lines()
    shared = shared_errors()
    for spec in registry.specs:
        family = "core_agent" if spec.name in own else "local_environment"
        yield from _tool_lines(registry.named(spec.name), family, shared)
    yield from ("## Shapes", "", "Parts of results that several tools share.", "")
    for name, fields in read_results().shapes.items():
        yield from (f"### `{name}`", "", *_result_table(fields), "")


def errors_of(tool: Tool) -> Reached:
    """Return what a tool can refuse for."""
    return errors_from(type(tool).__module__, type(tool).__name__)


def shared_errors() -> tuple[ErrorSeen, ...]:
    """Return what any call can be answered with, whichever tool it names."""
    found = (
        error for module, names in SHARED_BY_ALL for error in errors_from(module, *names).errors
    )
    return tuple(dict.fromkeys(found))


def _overview(registry: ToolRegistry, own: set[str]) -> Iterator[str]:
    yield from ("| tool | family | changes something | what it is for |", "|---|---|---|---|")
    for spec in registry.specs:
        family = "core_agent" if spec.name in own else "local_environment"
        changes = "yes" if spec.mutates else "no"
        first = spec.description.split(". ")[0].split(".\n")[0].replace("\n", " ").rstrip(".")
        yield f"| [`{spec.name}`](#{spec.name.lower()}) | {family} | {changes} | {first}. |"
    yield ""


def _envelope_lines() -> Iterator[str]:
    yield from (
        "## Every answer",
        "",
        "A call that worked is answered with `ok` (true), `tool_name`, `result` and, where there is"
        " something to remark on, `notes`: arguments that were read differently than written, say."
        " A result that is too large is replaced by `truncated` and a `preview`. A call that did"
        " not work is answered with `ok` (false), `tool_name`, `kind`, `message`, `retryable` and,"
        " where there are any, `hint`, `field` and `details`. What is only known when it happens"
        " stands here as `…`. Any call can be answered with one of these:",
        "",
        *_error_table(shared_errors()),
        "",
    )


def _tool_lines(tool: Tool, family: str, shared: tuple[ErrorSeen, ...]) -> Iterator[str]:
    spec = tool.spec
    yield from (f"## `{spec.name}`", "")
    yield from (f"> {line}".rstrip() for line in spec.description.splitlines())
    again = "may be planned again" if tool.only_plans else "is never carried out twice"
    yield from ("", f"- family: `{family}`", f"- a call {again}")
    if spec.freeform is not None:
        taken = f"- where the wire allows it, taken as plain text ({spec.freeform.syntax} grammar)"
        yield f"{taken} that stands for `{spec.freeform.argument}`"
    yield from ("", "### Arguments", "", *_argument_table(spec.input_schema), "")
    yield from ("### Result", "", *_result_table(read_results().tools[spec.name]), "")
    reached = errors_of(tool)
    own = tuple(error for error in reached.errors if error not in shared)
    if own or reached.is_admitting:
        yield from ("### Errors", "")
        yield from (*_error_table(own), "") if own else ()
        if reached.is_admitting:
            yield from ("Also every refusal of a message, see [errors](errors.md#refusals).", "")


def _argument_table(schema: JsonValue) -> list[str]:
    rows = list(_argument_rows(schema, ""))
    if not rows:
        return ["None."]
    return ["| argument | form | required | limits | meaning |", "|---|---|---|---|---|", *rows]


def _argument_rows(schema: JsonValue, above: str) -> Iterator[str]:
    assert isinstance(schema, dict)
    for name, part in schema["properties"].items():
        needed = "yes" if name in schema.get("required", ()) else _otherwise(part)
        bounds = "; ".join(dict.fromkeys(_bounds(part)))
        form = expected_form(_without_bounds(part))
        said = _cell(part.get("description", ""))
        yield f"| `{above}{name}` | {_cell(form)} | {needed} | {bounds} | {said} |"
        for inner in _items(part):
            yield from _argument_rows(inner, f"{above}{name}[].")


def _otherwise(part: Mapping[str, JsonValue]) -> str:
    default = part.get("default")
    return "no" if default is None else f"no: `{json.dumps(default)}`"


def _items(part: JsonValue) -> Iterator[JsonValue]:
    """Yield the objects a list is made of, also where the list may be null."""
    for branch in (part, *part.get("anyOf", ())):
        items = branch.get("items")
        if isinstance(items, dict) and "properties" in items:
            yield items


def _bounds(part: Mapping[str, JsonValue]) -> Iterator[str]:
    for keyword, words in _BOUNDS:
        if keyword in ("minLength", "minItems") and part.get(keyword) == 1:
            yield "not empty"
        elif keyword in part:
            yield words.format(f"{part[keyword]:,}")
    for branch in part.get("anyOf", ()):
        yield from _bounds(branch)


def _without_bounds(part: JsonValue) -> JsonValue:
    dropped = {keyword for keyword, _ in _BOUNDS}
    match part:
        case dict():
            return {name: _without_bounds(v) for name, v in part.items() if name not in dropped}
        case list():
            return [_without_bounds(each) for each in part]
        case _:
            return part


def _result_table(fields: tuple[ResultField, ...]) -> list[str]:
    rows = [
        f"| `{field.name}` | {field.type.removesuffix('?')} |"
        f" {'no' if field.type.endswith('?') else 'yes'} | {field.says} |"
        for field in fields
    ]
    return ["| field | type | always | meaning |", "|---|---|---|---|", *rows]


def _error_table(errors: tuple[ErrorSeen, ...]) -> list[str]:
    """One row for each kind with each hint; what leads to it is listed beside it."""
    rows: dict[tuple[str, str], dict[str, None]] = {}
    for error in errors:
        rows.setdefault((error.kind, error.hint), {}).setdefault(error.message)
    return [
        "| kind | when | hint |",
        "|---|---|---|",
        *(
            f"| `{kind}` | {_cell('; '.join(messages))} | {_cell(hint)} |"
            for (kind, hint), messages in sorted(rows.items())
        ),
    ]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
