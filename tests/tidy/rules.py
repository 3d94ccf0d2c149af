"""The house rules that a machine can judge, as functions over source text.

Owns:  what counts as too long, badly named, ambient or unfinished, and where SQL may stand.
Rule 1: a rule takes text and a path and returns offences; it reads nothing by itself, so that
        test_rules_can_fail.py can show it a bad sample.
Rule 2: an offence is keyed by path and name, never by line number, so that a ratchet entry does not
        drift when the file around it changes.
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final, NamedTuple

SOURCE_LINES_MAX: Final = 700
TEST_LINES_MAX: Final = 900
FUNCTION_LINES_MAX: Final = 60
RUNTIME_DEPENDENCIES_MAX: Final = 9
DECISION_LINES_MAX: Final = 40

BANNED_NAMES: Final = frozenset(
    {"utils", "helpers", "common", "misc", "base", "manager", "types", "core"}
)

_EDGES: Final = ("adapters", "cli")
_SYSTEM: Final = ("adapters",)

# What reads the world behind the caller's back, and the packages of holon where that is their job.
# A dotted name stands for itself and for everything below it.
AMBIENT: Final[Mapping[str, tuple[str, ...]]] = {
    "datetime.datetime.now": _EDGES,
    "datetime.datetime.utcnow": _EDGES,
    "datetime.datetime.today": _EDGES,
    "datetime.date.today": _EDGES,
    "time": _EDGES,
    "os.environ": _EDGES,
    "os.environb": _EDGES,
    "os.getenv": _EDGES,
    "subprocess": _EDGES,
    "os.urandom": _SYSTEM,
    "uuid": _SYSTEM,
    "random": _SYSTEM,
    "secrets": _SYSTEM,
    "asyncio.sleep": _SYSTEM,
    "anyio.sleep": _SYSTEM,
    "anyio.sleep_until": _SYSTEM,
    "anyio.current_time": (*_SYSTEM, "http"),  # a scope ends at a moment of the loop
}

_UNFINISHED: Final = re.compile(
    r"\b(?:TODO|FIXME|XXX|HACK)\b|\bNotImplementedError\b|\bnot (?:yet )?implemented\b"
)
# Where SQL may be written. Beside the adapter and its tests, these are the judges of the drills:
# they check the database itself without trusting the code under test.
SQL_PLACES: Final = (
    "src/holon/adapters/sqlite/*",
    "tests/adapters/sqlite/*",
    "tests/crash/*",
    "tests/drills/*",
    "tests/power/*",
    "tests/provenance/verdicts.py",
    "tests/support/*oracle*.py",
    "tests/tidy/test_rules_can_fail.py",  # samples
    "tests/support/database_plants.py",  # harm done behind the back of the code under test
)
_SQL: Final = re.compile(
    r"\b(?:select\b.+\bfrom|insert\s+(?:or\s+\w+\s+)?into|delete\s+from|update\s+\w+\s+set)\s+\w"
    r"|^\s*(?:select\s+1\b|pragma\s+\w|(?:create|drop|alter)\s+(?:table|index|trigger)\b)",
    re.IGNORECASE | re.DOTALL,
)
_RUNS_SQL: Final = frozenset({"execute", "executemany", "executescript"})
_PIN: Final = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Offence(NamedTuple):
    """One broken rule: where, and what a person should know."""

    key: str
    detail: str

    def __str__(self) -> str:
        return f"{self.key}: {self.detail}"


def check_file_size(path: str, text: str) -> Iterator[Offence]:
    """Yield an offence when the file is longer than its kind may be."""
    allowed = TEST_LINES_MAX if path.startswith("tests/") else SOURCE_LINES_MAX
    count = len(text.splitlines())
    if count > allowed:
        yield Offence(f"{path}::<module>", f"{count} lines, at most {allowed}")


def check_functions(path: str, text: str) -> Iterator[Offence]:
    """Yield every function that is too long."""
    for name, node in _definitions(ast.parse(text), prefix=""):
        if isinstance(node, ast.ClassDef):
            continue
        count = (node.end_lineno or node.lineno) - node.lineno + 1
        if count > FUNCTION_LINES_MAX:
            yield Offence(f"{path}::{name}", f"{count} lines, at most {FUNCTION_LINES_MAX}")


def _definitions(tree: ast.AST, *, prefix: str) -> Iterator[tuple[str, _Function | ast.ClassDef]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield name, child
            yield from _definitions(child, prefix=f"{name}.")
        else:
            yield from _definitions(child, prefix=prefix)


def check_name(path: str) -> Iterator[Offence]:
    """Yield an offence for a module or folder whose name says nothing about its content."""
    for part in PurePosixPath(path).with_suffix("").parts:
        if part.strip("_") in BANNED_NAMES:
            yield Offence(f"{path}::<name>", f"{part!r} names a drawer, not a thing")


def check_docstring(path: str, text: str) -> Iterator[Offence]:
    """Yield an offence when a module does not open by saying what it owns."""
    if PurePosixPath(path).name != "__init__.py" and not ast.get_docstring(ast.parse(text)):
        yield Offence(f"{path}::<module>", "opens without a docstring")


def check_init_is_empty(path: str, text: str) -> Iterator[Offence]:
    """Yield an offence for an `__init__.py` that holds code; the root one may hold the version."""
    if PurePosixPath(path).name != "__init__.py" or not text.strip():
        return
    if path == "src/holon/__init__.py":
        statements = ast.parse(text).body
        if all(_is_docstring(node) or _is_version(node) for node in statements):
            return
    yield Offence(f"{path}::<module>", "must be empty")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_version(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"


def check_ambient_reads(path: str, text: str) -> Iterator[Offence]:
    """Yield every read of time, chance, ids, environment or processes where it is not allowed."""
    parts = PurePosixPath(path).parts
    package = parts[2] if parts[:2] == ("src", "holon") and len(parts) > 3 else ""
    tree = ast.parse(text)
    for used in sorted(_names_used(tree)):
        banned = _banned_prefix(used)
        if banned is not None and package not in AMBIENT[banned]:
            allowed = ", ".join(AMBIENT[banned])
            yield Offence(f"{path}::{used}", f"reads the world; hand it in (allowed: {allowed})")


def _banned_prefix(dotted: str) -> str | None:
    return next((b for b in AMBIENT if dotted == b or dotted.startswith(f"{b}.")), None)


def _names_used(tree: ast.Module) -> set[str]:
    """Return every imported module and dotted use, with aliases resolved to their full names."""
    meant: dict[str, str] = {}
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                used.add(alias.name)
                meant[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                used.add(f"{node.module}.{alias.name}")
                meant[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, *rest = _chain(node)
            if head in meant:
                used.add(".".join([meant[head], *rest]))
    return used


def _chain(node: ast.Attribute) -> list[str]:
    """Return `a.b.c` as its parts; the head is empty when it is not a plain chain of names."""
    parts: list[str] = []
    current: ast.expr = node
    while isinstance(current, ast.Attribute):
        parts.append(current.attr)
        current = current.value
    parts.append(current.id if isinstance(current, ast.Name) else "")
    return parts[::-1]


def check_sql(path: str, text: str) -> Iterator[Offence]:
    """Yield all SQL, and every call that runs some, where the database is not the matter."""
    if any(fnmatch(path, place) for place in SQL_PLACES):
        return
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _RUNS_SQL:
            yield Offence(f"{path}::{ast.unparse(node)}", "runs SQL")
    for words in _texts_of(tree):
        if _SQL.search(words):
            yield Offence(f"{path}::{words[:60]}", "is SQL; ask the reads of the store instead")


def _texts_of(tree: ast.Module) -> Iterator[str]:
    """Yield every text of a module but its docstrings, formatted ones with x for what is put in."""
    passed_over: set[int] = set()
    for node in ast.walk(tree):  # outer nodes come first
        if isinstance(node, ast.Expr):
            passed_over.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            passed_over.update(id(part) for part in node.values)
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )
        elif isinstance(node, ast.Constant) and id(node) not in passed_over:
            yield str(node.value)


def check_finished(path: str, text: str) -> Iterator[Offence]:
    """Yield every mark of unfinished work."""
    for line in text.splitlines():
        mark = _UNFINISHED.search(line)
        if mark is not None:
            yield Offence(f"{path}::{mark.group()}", f"unfinished: {line.strip()[:80]}")


def check_dependencies(pyproject: str) -> Iterator[Offence]:
    """Yield an offence when the runtime leans on more packages than it may."""
    names = tomllib.loads(pyproject)["project"]["dependencies"]
    if len(names) > RUNTIME_DEPENDENCIES_MAX:
        yield Offence(
            "pyproject.toml::dependencies", f"{len(names)}, at most {RUNTIME_DEPENDENCIES_MAX}"
        )


def check_pins(path: str, text: str) -> Iterator[Offence]:
    """Yield every requirement line that is not an exact pin; addresses and ranges are refused."""
    for line in text.splitlines():
        if not line or line.startswith("#") or re.fullmatch(r"-r [a-z]+\.txt", line):
            continue
        if _PIN.fullmatch(line) is None:
            yield Offence(f"{path}::{line}", "is not an exact pin")


def check_decisions(records: Mapping[str, str]) -> Iterator[Offence]:
    """Yield decision records that are misnamed, too long or share a number."""
    owner: dict[str, str] = {}
    for path, text in sorted(records.items()):
        numbered = re.fullmatch(r"(\d{4})-[a-z0-9-]+\.md", PurePosixPath(path).name)
        if numbered is None:
            yield Offence(f"{path}::<name>", "is not NNNN-some-words.md")
            continue
        first = owner.setdefault(numbered.group(1), path)
        if first != path:
            yield Offence(f"{path}::<number>", f"is taken by {first}")
        count = len(text.splitlines())
        if count > DECISION_LINES_MAX:
            yield Offence(f"{path}::<module>", f"{count} lines, at most {DECISION_LINES_MAX}")


def settle_with_ratchet(offences: list[Offence], ratchet: list[str]) -> list[str]:
    """Return what is wrong once known debts are set aside, and debts that are no longer owed."""
    keys = {offence.key for offence in offences}
    fresh = [str(offence) for offence in offences if offence.key not in ratchet]
    paid = [
        f"{key}: no longer offends; delete it from the ratchet"
        for key in ratchet
        if key not in keys
    ]
    return fresh + paid
