"""The tree keeps the house rules of STYLE.md; tests/tidy/ratchet.toml lists what does not yet."""

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tidy import rules

ROOT = Path(__file__).resolve().parents[2]


@cache
def _python_files(*folders: str) -> dict[str, str]:
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def _texts(folder: str, pattern: str) -> dict[str, str]:
    found = sorted((ROOT / folder).glob(pattern))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def _ratchet(rule: str) -> list[str]:
    text = (ROOT / "tests/tidy/ratchet.toml").read_text(encoding="utf-8")
    entries: list[str] = tomllib.loads(text).get(rule, [])
    return entries


Check = Callable[[str, str], Iterator[rules.Offence]]

EVERYWHERE = ("src", "tests", "scripts", "bench")


@pytest.mark.parametrize(
    ("rule", "check", "folders"),
    [
        pytest.param("file_size", rules.check_file_size, EVERYWHERE, id="file_size"),
        pytest.param(
            "functions",
            rules.check_functions,
            EVERYWHERE,
            id="functions",
        ),
        pytest.param("name", lambda path, _text: rules.check_name(path), EVERYWHERE, id="name"),
        pytest.param(
            "docstring", rules.check_docstring, ("src", "scripts", "bench"), id="docstring"
        ),
        pytest.param(
            "init_is_empty", rules.check_init_is_empty, ("src", "tests"), id="init_is_empty"
        ),
        pytest.param("ambient_reads", rules.check_ambient_reads, ("src",), id="ambient_reads"),
        pytest.param("sql", rules.check_sql, ("src", "tests"), id="sql"),
        pytest.param("finished", rules.check_finished, ("src", "scripts", "bench"), id="finished"),
    ],
)
def test_every_module_keeps(rule: str, check: Check, folders: tuple[str, ...]) -> None:
    files = _python_files(*folders)
    offences = [offence for path, text in files.items() for offence in check(path, text)]
    assert rules.settle_with_ratchet(offences, _ratchet(rule)) == []


def test_tests_hold_no_unfinished_work() -> None:
    files = {p: t for p, t in _python_files("tests").items() if not p.startswith("tests/tidy/")}
    assert [str(o) for p, t in files.items() for o in rules.check_finished(p, t)] == []


def test_the_runtime_leans_on_few_packages() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert list(rules.check_dependencies(pyproject)) == []


def test_requirements_are_exact_pins_without_addresses() -> None:
    files = _texts("requirements", "*.txt")
    assert files
    assert [str(o) for p, t in files.items() for o in rules.check_pins(p, t)] == []


def test_every_runtime_dependency_is_pinned() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {name.split(">=")[0] for name in pyproject["project"]["dependencies"]}
    pinned = {
        line.split("==")[0]
        for line in _texts("requirements", "runtime.txt")["requirements/runtime.txt"].splitlines()
    }
    assert wanted <= pinned


def test_decision_records_are_numbered_once_and_short() -> None:
    records = _texts("docs/decisions", "*")
    assert records
    assert [str(offence) for offence in rules.check_decisions(records)] == []


def test_the_version_is_said_once() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    init = (ROOT / "src/holon/__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{pyproject["project"]["version"]}"' in init


def test_the_ratchet_names_only_known_rules() -> None:
    text = (ROOT / "tests/tidy/ratchet.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) == {
        "file_size",
        "functions",
        "name",
        "docstring",
        "ambient_reads",
    }
