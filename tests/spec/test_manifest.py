"""Every binding sentence has a test, and every test that cites one cites a real sentence."""

import tomllib
from pathlib import Path

import pytest

from tests.spec.manifest import Mark, Row, find_faults, marks_of, read_marks, read_rows, rows_of

SPEC = Path(__file__).resolve().parent
SECTIONS = {"001": ["closure-decision", "queue-rules"]}
GOOD = Row(
    "closure:work-first", "closure.toml", {"says": "Work.", "source": "001#closure-decision"}
)
PROOF = Mark("closure:work-first", "decide/test_closure.py", 7)


def test_requirements_tests_and_specification_agree() -> None:
    sections = tomllib.loads((SPEC / "sections.toml").read_text(encoding="utf-8"))
    assert list(find_faults(read_rows(SPEC), read_marks(SPEC.parent), sections)) == []


def test_a_row_with_its_proof_is_faultless() -> None:
    assert list(find_faults([GOOD], [PROOF], SECTIONS)) == []


@pytest.mark.parametrize(
    ("rows", "marks", "complaint"),
    [
        pytest.param([GOOD], [], "no test is marked", id="row without a test"),
        pytest.param([], [PROOF], "is not a row", id="mark without a row"),
        pytest.param([GOOD, GOOD], [PROOF], "and again in", id="id stated twice"),
        pytest.param(
            [GOOD], [PROOF, Mark(None, "x.py", 1)], "not a plain string", id="computed id"
        ),
        pytest.param(
            [GOOD._replace(fields={"source": "001#queue-rules"})],
            [PROOF],
            "says nothing",
            id="mute",
        ),
        pytest.param(
            [GOOD._replace(fields={"says": " ", "source": "001#queue-rules"})],
            [PROOF],
            "says nothing",
            id="blank words",
        ),
        pytest.param(
            [GOOD._replace(fields={"says": "Work."})], [PROOF], "NNN#slug", id="no source"
        ),
        pytest.param(
            [GOOD._replace(fields={"says": "Work.", "source": "runtime-spec.md#closure"})],
            [PROOF],
            "NNN#slug",
            id="source of another form",
        ),
        pytest.param(
            [GOOD._replace(fields={"says": "Work.", "source": "001#closure-decisions"})],
            [PROOF],
            "did you mean closure-decision?",
            id="section that does not exist",
        ),
        pytest.param(
            [GOOD._replace(fields={**GOOD.fields, "note": "x"})],
            [PROOF],
            "exactly",
            id="extra field",
        ),
        pytest.param(
            [GOOD._replace(id="Closure")],
            [PROOF._replace(id="Closure")],
            "area:some-words",
            id="id of another form",
        ),
    ],
)
def test_the_manifest_complains_about(rows: list[Row], marks: list[Mark], complaint: str) -> None:
    assert any(complaint in fault for fault in find_faults(rows, marks, SECTIONS))


def test_marks_are_found_on_functions_classes_and_params() -> None:
    text = """
import pytest
@pytest.mark.requirement("a:one")
def test_one(): ...
@pytest.mark.requirement("a:two")
class TestTwo:
    @pytest.mark.requirement("a:three")
    async def test_three(self): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("a:four"))])
def test_four(x): ...
NAME = "a:five"
@pytest.mark.requirement(NAME)
def test_five(): ...
pytestmark = pytest.mark.requirement("a:six")
"""
    found = {mark.id for mark in marks_of("x.py", text)}
    assert found == {"a:one", "a:two", "a:three", "a:four", None, "a:six"}


def test_rows_are_read_with_the_file_they_stand_in() -> None:
    text = '["a:one"]\nsays = "One."\nsource = "001#queue-rules"\n'
    assert rows_of("a.toml", text) == [
        Row("a:one", "a.toml", {"says": "One.", "source": "001#queue-rules"})
    ]
