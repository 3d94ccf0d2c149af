"""Which errors a tool can answer with, read off its source.

Owns:  following a tool from its class to every `refuse`, `PatchRefusedError`, `Refusal` and
       `ToolError` it can reach, and reading kind, message, hint and field where they are written.
Rule 1: only code under holon.tools and holon.decide is followed. Admission is not: what it refuses
        is the same for every message and has its own page.
Rule 2: a text, or a part of one, that is only known when it happens reads as an ellipsis; a
        constant reads as its value.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple, TypeAlias

from holon.model.errors import HolonError, Refusal, RefusalCode
from holon.model.turns.tools import ToolRefused
from holon.tools.work.items import refused

FOLLOWED: Final = ("holon.tools", "holon.decide")
ADMISSION: Final = "decide_admission"
_MAKERS: Final = frozenset({"refuse", "_refused", "PatchRefusedError", "ToolError", "Refusal"})
_OF_PATCHES: Final = frozenset({"_refused", "PatchRefusedError"})
_UNKNOWN: Final = "…"

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.stmt


class ErrorSeen(NamedTuple):
    """One place in the source that answers with an error."""

    kind: str
    message: str
    hint: str  # empty where none is given


class Reached(NamedTuple):
    """What can be reached from a definition."""

    errors: tuple[ErrorSeen, ...]
    is_admitting: bool  # it hands a message to admission


@cache
def errors_from(module_name: str, *names: str) -> Reached:
    """Follow definitions of a module; without names, all of them."""
    start = _definitions(module_name)
    waiting = [(module_name, name) for name in (names or start)]
    seen: dict[tuple[str, str], None] = {}
    while waiting:
        place = waiting.pop(0)
        if place not in seen:
            seen[place] = None
            waiting.extend(_uses(*place))
    errors = [error for place in seen for error in _errors_at(*place)]
    is_admitting = any(name == ADMISSION for _, name in seen)
    return Reached(tuple(dict.fromkeys(errors)), is_admitting)


@cache
def _definitions(module_name: str) -> dict[str, Definition]:
    tree = ast.parse(inspect.getsource(import_module(module_name)))
    found: dict[str, Definition] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = node
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = node
            case _:
                pass
    return found


def _uses(module_name: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the definitions that one definition names, where they may be followed."""
    node = _definitions(module_name).get(name)
    if node is None or name == ADMISSION:
        return
    module = import_module(module_name)
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and (part.module or "").startswith(FOLLOWED):
            yield from ((str(part.module), each.name) for each in part.names)
        elif isinstance(part, ast.Name) and part.id in _definitions(module_name):
            yield module_name, part.id
        elif isinstance(part, ast.Name | ast.Attribute):
            value = _value(part, module)
            home = getattr(value, "__module__", None)
            if isinstance(home, str) and home.startswith(FOLLOWED) and hasattr(value, "__name__"):
                yield home, value.__name__


def _errors_at(module_name: str, name: str) -> Iterator[ErrorSeen]:
    node = _definitions(module_name).get(name)
    module = import_module(module_name)
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Call) and _called(part) in _MAKERS:
            yield from _errors_of(part, module, node)


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _errors_of(
    call: ast.Call, module: ModuleType, around: Definition | None
) -> Iterator[ErrorSeen]:
    named = {word.arg: word.value for word in call.keywords}
    given = dict(zip(("kind", "message"), call.args, strict=False)) | named
    hint = _told(given["hint"], module) if "hint" in given else ""
    if not hint and _called(call) in _OF_PATCHES:
        hint = _patch_hint()
    said = given.get("code", given.get("kind"))
    for kind in _kinds(said, module, around) if said is not None else ():
        yield ErrorSeen(kind, _told(given.get("message"), module), hint)


@cache
def _patch_hint() -> str:
    """What a refused patch is told where the refusal itself has no hint."""
    module = import_module("holon.tools.workspaces.apply_patch")
    for part in ast.walk(_definitions(module.__name__)["_refused"]):
        if isinstance(part, ast.Call) and _called(part) == "ToolError":
            return next(_told(word.value, module) for word in part.keywords if word.arg == "hint")
    raise AssertionError("apply_patch does not make its refusals in _refused any more")


def _kinds(node: ast.expr, module: ModuleType, around: Definition | None) -> Iterator[str]:
    """Read a kind: a text, a constant, a refusal code, or the codes of a declared error."""
    value = _value(node, module)
    if isinstance(value, RefusalCode):
        yield _as_tool_error(value)
    elif isinstance(value, str):
        yield str(value)
    elif isinstance(node, ast.Attribute) and node.attr == "code" and around is not None:
        for error in _declared(node, module, around):
            yield from (each.code for each in (error, *error.__subclasses__()))


def _declared(
    node: ast.Attribute, module: ModuleType, around: Definition
) -> Iterator[type[HolonError]]:
    """Yield the class a name has where it is used: a parameter's, or that of an except clause."""
    name = ast.unparse(node.value)
    for part in ast.walk(around):
        match part:
            case ast.arg(arg=declared, annotation=ast.expr() as said) if declared == name:
                found = _value(said, module)
            case ast.ExceptHandler(name=declared, type=ast.expr() as said) if declared == name:
                found = _value(said, module) if node in ast.walk(part) else None
            case _:
                continue
        if isinstance(found, type) and issubclass(found, HolonError):
            yield found


def _as_tool_error(code: RefusalCode) -> str:
    """The kind a model reads for a refusal of the core."""
    outcome = refused(Refusal(code=code, message="-", hint="-")).outcome
    assert isinstance(outcome, ToolRefused)
    return outcome.error.kind


def _value(node: ast.expr, module: ModuleType) -> object:
    """Evaluate a constant or a dotted name; None for everything else."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return getattr(module, name, None)
        case ast.Attribute(value=owner, attr=attr):
            return getattr(_value(owner, module), attr, None)
        case _:
            return None


def _told(node: ast.expr | None, module: ModuleType) -> str:
    """Read a text as far as it is known."""
    return re.sub(f"{_UNKNOWN}[{_UNKNOWN} ]*{_UNKNOWN}", _UNKNOWN, _text(node, module) or _UNKNOWN)


def _text(node: ast.expr | None, module: ModuleType) -> str | None:
    match node:
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, module) or _UNKNOWN for part in parts)
        case ast.FormattedValue(value=inner):
            value = _value(inner, module)
            return str(value) if isinstance(value, str | int) else _UNKNOWN
        case ast.BoolOp(values=parts):
            return next((text for part in parts if (text := _text(part, module))), None)
        case ast.IfExp(body=one, orelse=other):
            return f"{_text(one, module)}, or {_text(other, module)}"
        case ast.expr():
            value = _value(node, module)
            return value if isinstance(value, str) else None
        case _:
            return None
