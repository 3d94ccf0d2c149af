"""Every scan that is made of a text from outside.

Owns:  finding the regular expressions of the source, and the list of scans that are made of several
       expressions or of none.
Rule 1: an expression that a module keeps under a name is measured with every method it is called
        with, without being listed. One that is made inside a function, or used without a method of
        its own, has to be listed: by a scan that goes through it, or as exempt, with the reason.
"""

import ast
import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import holon
from holon.adapters.files import archives
from holon.adapters.files.skill_front_matter import read_front_matter, text_fields
from holon.adapters.providers import refusals, reset_times
from holon.adapters.providers.local import prompt as local_prompt
from holon.adapters.providers.wire_request import plain_name
from holon.adapters.sqlite.memory_index import cjk_bigrams, index
from holon.adapters.system.secrets import SecretRegistry
from holon.cli.console import options, output, terminal_text
from holon.config import environment_names
from holon.decide.agents import templates
from holon.decide.guidance import command_words, skills
from holon.decide.providers import lenient_arguments, schemas
from holon.decide.text import bounded, fencing
from holon.decide.turns import conversation, evidence
from holon.decide.wake import cron, triggers
from holon.model.errors import HolonError
from holon.model.providers.attempts import TransportDiagnostics
from holon.tools.arguments import decode_arguments
from holon.tools.wake import SleepArguments
from holon.tools.workspaces.patching.parse import parse_patch
from holon.wire.http_response import NotHttpError, parsed_head
from holon.wire.requests import PromptRequest
from holon.wire.server_sent_events import SseParser
from holon.wire.strict_body import decode_body
from tests.hostile.growth import Scan

SOURCE: Final = Path(holon.__file__).parent
_NOT_SHIPPED: Final = "testing"
_MAKES: Final = frozenset({"compile"})
_DIRECT: Final = frozenset(
    {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
)


class Place(NamedTuple):
    """Where an expression stands: a module and the name it has there, or the function around it."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@cache
def expressions() -> frozenset[Place]:
    """Every place in the source that makes a regular expression, or uses one directly."""
    return frozenset(
        place
        for path in _modules()
        for place in _places(ast.parse(path.read_text()), str(path.relative_to(SOURCE)))
    )


def named_patterns() -> Iterator[tuple[Place, str, Scan]]:
    """Every expression a module keeps under a name, with each method it is called with."""
    for place in sorted(expressions()):
        pattern = _value_of(place)
        if isinstance(pattern, re.Pattern):
            for method in sorted(_methods(place)):
                yield place, method, _scan_of(pattern, method)


def unmeasured() -> set[str]:
    """Expressions that no scan is known to go through."""
    measured = {place for place, _, _ in named_patterns()}
    return {str(place) for place in expressions() - measured}


def _modules() -> Iterator[Path]:
    return (
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != _NOT_SHIPPED
    )


def _places(tree: ast.Module, module: str) -> Iterator[Place]:
    for statement in tree.body:
        for owner, node in _owned(statement, _name_of(statement)):
            if _uses_re(node):
                yield Place(module, owner)


def _owned(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.AST]]:
    yield owner, node
    for child in ast.iter_child_nodes(node):
        match child:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield from _owned(child, f"{owner}.{name}")
            case _:
                yield from _owned(child, owner)


def _name_of(statement: ast.stmt) -> str:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case _:
            return f"line {statement.lineno}"


def _uses_re(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attribute)):
            return attribute in _MAKES | _DIRECT
        case _:
            return False


def _value_of(place: Place) -> object:
    dotted = place.module.removesuffix(".py").replace("/", ".")
    return getattr(importlib.import_module(f"holon.{dotted}"), place.name, None)


def _methods(place: Place) -> set[str]:
    """The methods a named expression is called with, in its own module and where it is imported."""
    called = rf"\b{re.escape(place.name)}\.({'|'.join(_DIRECT)})\b"
    own = set(re.findall(called, (SOURCE / place.module).read_text()))
    if place.name.startswith("_"):
        return own
    return own.union(*(re.findall(called, path.read_text()) for path in _modules()))


def _scan_of(pattern: re.Pattern[Any], method: str) -> Scan:
    of_bytes = isinstance(pattern.pattern, bytes)
    operation: Callable[[Any], object] = getattr(pattern, method)
    if method in ("sub", "subn"):
        operation = _replacing(pattern)
    elif method == "finditer":
        operation = _exhausting(pattern)
    if of_bytes:
        return lambda text: operation(_bytes(text))
    return operation


def _replacing(pattern: re.Pattern[Any]) -> Callable[[Any], object]:
    return lambda text: pattern.sub(lambda _: text[:0], text)


def _exhausting(pattern: re.Pattern[Any]) -> Callable[[Any], object]:
    return lambda text: sum(1 for _ in pattern.finditer(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _sound(text: str) -> str:
    """What a decoder lets in: no half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


def _refusing(scan: Callable[[str], object]) -> Scan:
    """A scan that may say no."""

    def scanned(text: str) -> None:
        try:
            scan(_sound(text))
        except (HolonError, NotHttpError, ValueError, EOFError):
            return

    return scanned


_SECRETS: Final = SecretRegistry()
for _number, _secret in enumerate((" " * 12, "a" * 40, "<" * 9, "\\" * 10, '"\\/%+ =&' * 3)):
    _SECRETS.learn(f"test:{_number}", f".{_secret}.")
    _SECRETS.learn(f"inner:{_number}", _secret.strip() or f"x{_secret}x")


def _redacted_stream(text: str) -> None:
    stream = _SECRETS.stream()
    for at in range(0, len(text), 4_096):
        stream.feed(text[at : at + 4_096])
    stream.finish()


def _refused(text: str) -> object:
    return refusals.refused(400, {}, _bytes(text), diagnostics=TransportDiagnostics(provider="p"))


def _refused_in_json(text: str) -> object:
    body = json.dumps({"error": {"message": text, "code": text[:80]}}).encode()
    return refusals.refused(400, {}, body, diagnostics=TransportDiagnostics(provider="p"))


def _events(text: str) -> None:
    parser = SseParser(line_bytes_max=2**20, event_bytes_max=2**20)
    data = _bytes(text)
    for at in range(0, len(data), 1_000):
        parser.feed(data[at : at + 1_000])


def _snippet(text: str) -> object:
    words = cjk_bigrams.query_words(text) or cjk_bigrams.query_words("word")
    assert words is not None
    return index._snippet(text, index._shown_pattern(words))


def _with_home(text: str) -> object:
    return options._COMMANDS.sub(lambda found: found[0] + " --home x", text)


def _header(text: str) -> object:
    line = text.replace("\r\n", " ")
    return parsed_head(b"HTTP/1.1 200 OK\r\nname: " + _bytes(line))


def _arguments(text: str) -> object:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}
    lenient_arguments.coerce_arguments({"a": text, text[:200]: 1}, schema)
    return decode_arguments({"duration_ms": text, text: 1}, SleepArguments)


def _body(text: str) -> object:
    decode_body(json.dumps({"text": text}).encode(), PromptRequest)
    return decode_body(json.dumps({text: text}).encode(), PromptRequest)


def _bare_body(text: str) -> object:
    return decode_body(_bytes(text), PromptRequest)


def _placed_patch(text: str) -> object:
    return parse_patch(f"--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n {text}\n+{text}\n")


def _hunks(text: str) -> object:
    return parse_patch(f"*** Begin Patch\n*** Update File: x\n{text}\n*** End Patch\n")


_AROUND: Final = command_words.Surroundings(cwd="/work", variables={"HOME": "/home/someone"})
_NOW: Final = datetime(2026, 7, 1, tzinfo=UTC)
_MIB: Final = 2**20

# The scans that are made of several expressions, or of none.
SCANS: Final[Mapping[str, Scan]] = {
    "a fenced body": lambda text: fencing.fenced(text, content_id="message"),
    "a fenced body of the operator": lambda text: fencing.fenced(
        text, content_id="message", by_operator=True
    ),
    "a fenced body that is cut": lambda text: fencing.fenced(
        _sound(text), content_id="message", body_bytes_max=len(text) // 2
    ),
    "a body that holds its fence's name": lambda text: fencing.fenced(
        fencing.fence_name("message") + text, content_id="message"
    ),
    "disarmed words": fencing.disarmed,
    "disarmed words that are cut": lambda text: fencing.disarmed_within(
        _sound(text), bytes_max=len(text) // 3
    ),
    "a section that is cut": lambda text: fencing.cut_between_fences(
        f"<body-0123456789ab>\n{_sound(text)}\n</body-0123456789ab>", bytes_max=len(text) // 2
    ),
    "quoted words": fencing.quoted,
    "a text without tags": fencing.without_tags,
    "a shortened text": lambda text: bounded.shortened(_sound(text), bytes_max=len(text) // 2),
    "the beginning of a text": lambda text: bounded.beginning_of(
        text, chars_max=max(2, len(text) - 1)
    ),
    "the paths of a command": lambda text: list(command_words.named_paths(text, _AROUND)),
    "a text without secrets": _SECRETS.redact,
    "a stream without secrets": _redacted_stream,
    "the front matter of a skill": lambda text: _refusing(
        lambda each: read_front_matter(each.encode())
    )(text),
    "the front matter of a skill, opened": lambda text: _refusing(
        lambda each: read_front_matter(f"---\nname: a\ndescription: {each}\n---\n".encode())
    )(text),
    "an extended header of an archive": _refusing(lambda text: archives._pax_records(_bytes(text))),
    "many records in a header of an archive": lambda text: archives._pax_records(
        b"6 a=b\n" * len(text)
    ),
    "YAML fields": _refusing(lambda text: text_fields(text[:65_536], ("name", "description"))),
    "a provider's refusal": _refused,
    "a provider's refusal in JSON": _refused_in_json,
    "a line of a provider's words": refusals.redacted_line,
    "when a provider is back": lambda text: reset_times.wait_of(text, now=_NOW),
    "a provider's headers": _refusing(_header),
    "server-sent events": _refusing(_events),
    "a tool's name on a wire": lambda text: plain_name(_sound(text)),
    "an index's words": cjk_bigrams.projected,
    "a query's words": cjk_bigrams.query_words,
    "a snippet of memory": _snippet,
    "plain words of a message": local_prompt.plain_words,
    "a fenced message of a small model": lambda text: local_prompt.plain_words(
        f"[Message]\nid: a\n<body-0123456789ab>\n{text}\n</body-0123456789ab>"
    ),
    "what a tool told": lambda text: local_prompt._readable_text(_sound(text)),
    "a text for a terminal": terminal_text.plain,
    "a line for a terminal": lambda text: terminal_text.fitted(
        terminal_text.one_line(text), cells_max=len(text) // 2
    ),
    "a hint with the home in it": _with_home,
    "moments in a table": output.with_moments,
    "the cell of a table": output.cell_text,
    "a cron expression": _refusing(cron.read_fields),
    "a place in a schema": lambda text: schemas.schema_at({"type": "object"}, text),
    "a tool's arguments": _refusing(_arguments),
    "a request's body": _refusing(_body),
    "a request's body that is no JSON": _refusing(_bare_body),
    "a patch": _refusing(parse_patch),
    "a patch with a long line": _refusing(_placed_patch),
    "hunks of a patch": _refusing(_hunks),
    "a template's address": _refusing(templates.parse_selector),
    "a skill's address": _refusing(skills.parse_package),
    "a trigger's token": _refusing(triggers.split_token),
    "evidence of a delivery": _refusing(lambda text: triggers.evidence_of(text.encode())),
    "a provider's name in the environment": environment_names.provider_word,
    "a line of working memory": evidence.memory_line,
    "a line of a recap": conversation._preview,
    "a command that may be a check": lambda text: (
        evidence.CommandRun(cmd=text[: evidence._CMD_CHARS_MAX], outcome="done").is_check
    ),
}

# Expressions that no scan above and no measurement by name goes through, and why that is well.
COVERED: Final[Mapping[str, str]] = {
    "decide/text/fencing.py:_patterns": "disarmed words",
    "decide/text/fencing.py:fenced": "a body that holds its fence's name",
    "decide/text/secrets.py:_written": "a text without secrets",
    "decide/text/secrets.py:_compiled": "a text without secrets",
    "decide/turns/evidence.py:CommandRun.is_check": "a command that may be a check",
    "adapters/sqlite/memory_index/cjk_bigrams.py:_patterns": "a query's words",
    "adapters/sqlite/memory_index/index.py:_shown_pattern": "a snippet of memory",
    "adapters/providers/refusals.py:_by_message": "a provider's refusal in JSON",
    "adapters/providers/refusals.py:_unsupported_name": "a provider's refusal in JSON",
    "decide/wake/triggers.py:TRIGGER_SHAPE": "a text without secrets",
    "adapters/providers/reset_times.py:_number": "when a provider is back",
    "config/environment_names.py:provider_word": "a provider's name in the environment",
    "wire/strict_body.py:_SURROGATE": "a request's body",
    "wire/strict_body.py:_PLAIN_NUL": "a request's body",
}
EXEMPT: Final[Mapping[str, str]] = {
    "adapters/providers/scripted/provider.py:_line_at": "scripts are the tester's own files",
    "config/value_types.py:TextValue.from_text": "settings are the operator's, and one line each",
}
