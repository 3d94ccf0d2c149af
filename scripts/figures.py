"""Measures the source tree and prints the figures as Markdown.

Owns:  what can be counted about the size and shape of src/holon. The figures are read in a review;
       none of them fails a build.
Rule 1: a blank line inside a docstring is a docstring line; a line of code with a comment is code.
Rule 2: a module is imported by the modules that name it in an import, also where that is inside a
        function or for types only.
"""

import argparse
import ast
import inspect
import io
import re
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Final, get_args

import anyio

from holon.model.commits import Change
from tests.support.walks import PACKAGE, prompt_walk, record

LONGEST_SHOWN: Final = 10
KINDS: Final = ("code", "docstring", "comment", "blank")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(arguments: Sequence[str]) -> int:
    """Print every figure; return the exit code."""
    kinds = sorted(kind.__name__ for kind in get_args(Change))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--change", default="MoveTrigger", choices=kinds, metavar="KIND", help="a kind of change"
    )
    change = parser.parse_args(arguments).change
    texts = {
        module_name(path): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "__init__.py"
    }
    for part in (lines(texts), importers(texts), entries(), prompt_files()):
        sys.stdout.write(f"{part}\n\n")
    sys.stdout.write(f"{change_files(texts, change, kinds)}\n\n")
    sys.stdout.write(f"{parameters(texts)}\n\n{public_methods(texts)}\n")
    return 0


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    return ".".join(("holon", *path.relative_to(PACKAGE).with_suffix("").parts))


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table under a heading; all columns but the first hold numbers."""
    cells = [head, ("---", *("--:" for _ in head[1:])), *rows]
    body = "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in cells)
    return f"## {title}\n\n{body}"


def lines(texts: Mapping[str, str]) -> str:
    """Count modules and lines by package."""
    counted: dict[str, Counter[str]] = {}
    for name, text in texts.items():
        package = name.split(".")[1] if name.count(".") > 1 else "(root)"
        found = lines_by_kind(text)
        for key in (package, "total"):
            counted.setdefault(key, Counter()).update({**found, "modules": 1})
    total = counted.pop("total")
    order = [*sorted(counted.items(), key=lambda item: -item[1]["code"]), ("total", total)]
    rows = [(name, counts["modules"], *(counts[kind] for kind in KINDS)) for name, counts in order]
    return table("Lines by package", ("package", "modules", *KINDS), rows)


def lines_by_kind(text: str) -> Counter[str]:
    """Count the lines of a module by what is on them."""
    kind_of = dict.fromkeys(range(1, len(text.splitlines()) + 1), "blank")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if kind_of[token.start[0]] == "blank":
                kind_of[token.start[0]] = "comment"
        elif token.string.strip():
            kind_of.update(dict.fromkeys(range(token.start[0], token.end[0] + 1), "code"))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node):
            first = node.body[0]
            span = range(first.lineno, (first.end_lineno or first.lineno) + 1)
            kind_of.update(dict.fromkeys(span, "docstring"))
    return Counter(kind_of.values())


def importers(texts: Mapping[str, str]) -> str:
    """List the modules that one other module imports, a neighbour in the same folder."""
    importing: dict[str, set[str]] = {name: set() for name in texts}
    for name, text in texts.items():
        for imported in imported_names(text):
            if imported in importing and imported != name:
                importing[imported].add(name)
    alone = [
        (name, importer)
        for name, found in importing.items()
        if len(found) == 1
        for importer in found
        if importer.rpartition(".")[0] == name.rpartition(".")[0]
    ]
    listed = "\n".join(f"- `{name}`, by `{importer}`" for name, importer in alone)
    return f"## Modules with one importer, in their own folder: {len(alone)}\n\n{listed}"


def imported_names(text: str) -> Iterator[str]:
    """Yield the names a module imports that may be modules."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def entries() -> str:
    """Count what a reader sees on opening the folder of a layer."""
    layers = [path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    counts = {
        layer.name: sum(not entry.name.startswith("__") for entry in layer.iterdir())
        for layer in layers
    }
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return table("Entries in the folder of a layer", ("layer", "entries"), rows)


def prompt_files() -> str:
    """Count the files whose functions run from a prompt over HTTP to its brief."""
    with tempfile.TemporaryDirectory() as folder:
        calls = anyio.run(record, prompt_walk, Path(folder))
    by_layer = Counter(file.split("/")[0] for file in {call.file for call in calls})
    title = f"Files a prompt passes through: {by_layer.total()}"
    return table(title, ("layer", "files"), by_layer.most_common())


def change_files(texts: Mapping[str, str], change: str, kinds: Sequence[str]) -> str:
    """Count the files that name a kind of change."""
    mentions = {
        kind: [name for name, text in texts.items() if re.search(rf"\b{kind}\b", text)]
        for kind in kinds
    }
    counts = [len(found) for found in mentions.values()]
    title = f"Files that name `{change}`: {len(mentions[change])}"
    summary = f"Of all {len(kinds)} kinds: median {median(counts):g}, at most {max(counts)}."
    listed = "\n".join(f"- `{name}`" for name in mentions[change])
    return f"## {title}\n\n{summary}\n\n{listed}"


def parameters(texts: Mapping[str, str]) -> str:
    """List the functions with the longest parameter lists."""
    found = [
        (f"`{name}.{function}`", count)
        for name, text in texts.items()
        for function, count in parameter_counts(ast.parse(text), prefix="")
    ]
    found.sort(key=lambda row: -row[1])
    return table("Longest parameter lists", ("function", "parameters"), found[:LONGEST_SHOWN])


def parameter_counts(tree: ast.AST, *, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield every function below a node with the number of its parameters, without `self`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            given = node.args
            names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            yield f"{prefix}{node.name}", len([n for n in names if n not in ("self", "cls")])
        if isinstance(node, ast.ClassDef | _Function):
            yield from parameter_counts(node, prefix=f"{prefix}{node.name}.")
        else:
            yield from parameter_counts(node, prefix=prefix)


def public_methods(texts: Mapping[str, str]) -> str:
    """List the classes with the most public methods, inherited ones of ours included."""
    rows = []
    for name in texts:
        if name == "holon.__main__":  # would start the command line
            continue
        for kind in vars(import_module(name)).values():
            if inspect.isclass(kind) and kind.__module__ == name:
                own, inherited = method_counts(kind)
                rows.append((f"`{name}.{kind.__name__}`", own + inherited, inherited))
    rows.sort(key=lambda row: -row[1])
    head = ("class", "public methods", "of them inherited")
    return table("Public methods by class", head, rows[:LONGEST_SHOWN])


def method_counts(kind: type) -> tuple[int, int]:
    """Count the public methods and properties of a class: its own, and those of its bases."""
    own: set[str] = set()
    inherited: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith("holon."):
            found = {name for name, value in vars(base).items() if is_method(name, value)}
            (own if base is kind else inherited).update(found)
    return len(own), len(inherited - own)


def is_method(name: str, value: object) -> bool:
    """Whether a member of a class is a public method or property."""
    is_member = isinstance(value, property | cached_property | classmethod | staticmethod)
    return not name.startswith("_") and (is_member or inspect.isfunction(value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
