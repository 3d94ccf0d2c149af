"""Every code a client may be refused with, and the status it comes with, read off the code.

Owns:  gathering them from the three places that make refusals: the table of refusal codes, the
       error classes that have a status, and the replies that are written out.
Rule 1: an error class counts when it stands in a package the control plane is made of. Adapters
        raise the errors of their ports; the rest of the tree never reaches a client.
Rule 2: a reply whose status or code cannot be read where it is written is a fault, not an omission.
"""

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

import holon
from holon.http.errors import REFUSALS, status_of
from holon.model.errors import HolonError

PACKAGES: Final = ("model", "decide", "ports", "wire", "runtime", "http")
MAKER: Final = "refused_reply"


class RefusalSeen(NamedTuple):
    """One code, with the status it comes with."""

    code: str
    status: int
    says: str  # empty where the sentence differs from case to case


@cache
def refusals_seen() -> tuple[RefusalSeen, ...]:
    """Return every code once for each status, by status and name."""
    found: dict[tuple[int, str], set[str]] = {
        (status.value, code.value): set() for code, status in REFUSALS.items()
    }
    for each in (*_of_classes(), *_written_out()):
        found.setdefault((each.status, each.code), set()).add(each.says)
    return tuple(
        RefusalSeen(code, status, says.pop() if len(says) == 1 else "")
        for (status, code), says in sorted(found.items())
    )


def _modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        root = import_module(f"{holon.__name__}.{package}")
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if not found.ispkg:  # those are empty
                yield import_module(found.name)


def _of_classes() -> Iterator[RefusalSeen]:
    for module in _modules():
        for kind in vars(module).values():
            is_error = inspect.isclass(kind) and issubclass(kind, HolonError)
            if not is_error or kind.__module__ != module.__name__:
                continue
            status = status_of(kind)
            if status is not None:
                yield RefusalSeen(kind.code, status.value, _first_line(kind))


def _written_out() -> Iterator[RefusalSeen]:
    for module in _modules():
        if not module.__name__.startswith("holon.http."):
            continue
        for around in ast.parse(inspect.getsource(module)).body:
            for node in ast.walk(around):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == MAKER:
                    yield from _of_call(node, around, module)


def _of_call(call: ast.Call, around: ast.stmt, module: ModuleType) -> Iterator[RefusalSeen]:
    status, code, says = call.args
    match code:
        case ast.Constant(value=str() as said):
            for number in _statuses(status, around, module):
                yield RefusalSeen(said, number, _text(says))
        case ast.Attribute(value=ast.Name(id=name), attr="code"):
            for kind in _caught_as(name, around, module):
                for number in _statuses(status, around, module):
                    yield RefusalSeen(kind.code, number, _first_line(kind))
        case _:
            raise AssertionError(f"{module.__name__}: {ast.unparse(call)} has no code to be read")


def _statuses(node: ast.expr, around: ast.stmt, module: ModuleType) -> tuple[int, ...]:
    """Read a status: one that is named, either of two, or what a variable was compared with."""
    match node:
        case ast.Attribute(value=ast.Name(id="HTTPStatus"), attr=name):
            return (HTTPStatus[name].value,)
        case ast.IfExp(body=if_so, orelse=if_not):
            return (*_statuses(if_so, around, module), *_statuses(if_not, around, module))
        case ast.Name(id=name):
            for part in ast.walk(around):
                match part:
                    case ast.Compare(left=ast.Name(id=other), comparators=[against]):
                        if other == name:
                            return _statuses(against, around, module)
                    case _:
                        continue
        case _:
            pass
    raise AssertionError(f"{module.__name__}: {ast.unparse(node)} is no status to be read")


def _caught_as(name: str, around: ast.stmt, module: ModuleType) -> Iterator[type[HolonError]]:
    """Yield the class that a clause catches under a name; a parameter may be any that is mapped."""
    for part in ast.walk(around):
        match part:
            case ast.ExceptHandler(name=caught, type=ast.Name(id=kind)) if caught == name:
                yield getattr(module, kind)
            case _:
                continue


def _text(node: ast.expr) -> str:
    """The sentence, where it is always the same."""
    match node:
        case ast.Constant(value=str() as said):
            return f"{said[:1].upper()}{said[1:]}."
        case _:
            return ""


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
