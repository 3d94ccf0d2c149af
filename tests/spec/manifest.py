"""Requirements and the tests that prove them, read without running anything.

Owns:  how the rows of tests/spec/requirements*.toml and the `requirement` marks are found, and what
       makes the two disagree.
Rule 1: rows come from requirements.toml and requirements/<area>.toml; an id belongs to one file.
Rule 2: marks are read from the syntax tree, so a test that is skipped or broken still counts as
        written, and a mark whose id is computed is refused: nobody could find it by searching.
"""

import ast
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ID_FORM: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*:[a-z0-9]+(?:-[a-z0-9]+)*")
SOURCE_FORM: Final = re.compile(r"(\d{3})#([a-z0-9_]+(?:-[a-z0-9_]+)*)")
ROW_FIELDS: Final = frozenset({"says", "source"})


class Row(NamedTuple):
    """One binding sentence as a file states it."""

    id: str
    path: str
    fields: Mapping[str, object]


class Mark(NamedTuple):
    """One use of the `requirement` mark; `id` is None when it is not a plain string."""

    id: str | None
    path: str
    line: int


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of requirements.toml and of every file in requirements/."""
    paths = [folder / "requirements.toml", *sorted((folder / "requirements").glob("*.toml"))]
    return [row for path in paths for row in rows_of(path.name, path.read_text(encoding="utf-8"))]


def rows_of(path: str, text: str) -> list[Row]:
    """Return the rows one file states."""
    found = tomllib.loads(text).items()
    return [Row(name, path, f if isinstance(f, dict) else {}) for name, f in found]


def read_marks(root: Path) -> list[Mark]:
    """Return every `requirement` mark below `root`."""
    files = sorted(root.rglob("*.py"))
    return [
        mark
        for path in files
        for mark in marks_of(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    ]


def marks_of(path: str, text: str) -> list[Mark]:
    """Return the `requirement` marks one file holds, whether on a function, a class or a param."""
    return [
        Mark(_plain_text(argument), path, node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement"
        for argument in node.args
    ]


def _plain_text(argument: ast.expr) -> str | None:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    return None


def find_faults(
    rows: list[Row], marks: list[Mark], sections: Mapping[str, list[str]]
) -> Iterator[str]:
    """Yield one sentence for everything on which rows, marks and the specification disagree."""
    stated: dict[str, str] = {}
    for row in rows:
        if row.id in stated:
            yield f"{row.id}: stated in {stated[row.id]} and again in {row.path}"
        stated.setdefault(row.id, row.path)
        yield from _row_faults(row, sections)
    marked = {mark.id for mark in marks}
    yield from (
        f"{name}: no test is marked with it ({stated[name]})"
        for name in stated
        if name not in marked
    )
    for mark in marks:
        if mark.id is None:
            yield f"{mark.path}:{mark.line}: the requirement id is not a plain string"
        elif mark.id not in stated:
            near = _nearest(mark.id, list(stated))
            yield f"{mark.path}:{mark.line}: {mark.id} is not a row{near}"


def _row_faults(row: Row, sections: Mapping[str, list[str]]) -> Iterator[str]:
    where = f"{row.id} ({row.path})"
    if ID_FORM.fullmatch(row.id) is None:
        yield f"{where}: an id reads area:some-words"
    if set(row.fields) != ROW_FIELDS:
        yield f"{where}: a row has exactly `says` and `source`"
    says, source = row.fields.get("says"), row.fields.get("source")
    if not isinstance(says, str) or not says.strip():
        yield f"{where}: says nothing"
    form = SOURCE_FORM.fullmatch(source) if isinstance(source, str) else None
    if form is None:
        yield f"{where}: source {source!r} does not read NNN#slug"
        return
    number, slug = form.groups()
    if slug not in sections.get(number, []):
        yield f"{where}: {source} is no section{_nearest(slug, sections.get(number, []))}"


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
