"""docs/reference says what the code says, and the check that keeps it so can fail."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts import gen_reference

NAMES = sorted(path.name for path in gen_reference.FOLDER.glob("*.md"))


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    return gen_reference.pages()


def test_the_reference_has_not_drifted_from_the_code(pages: Mapping[str, str]) -> None:
    assert gen_reference.find_drift(gen_reference.FOLDER, pages) == [], "run `make docs`"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_that_differs_is_reported(
    name: str, pages: Mapping[str, str], tmp_path: Path
) -> None:
    gen_reference.write(tmp_path, pages)
    assert gen_reference.find_drift(tmp_path, pages) == []
    (tmp_path / name).write_text("something else\n", encoding="utf-8")
    assert gen_reference.find_drift(tmp_path, pages) == [name]


def test_a_page_that_is_missing_or_belongs_to_nothing_is_reported(
    pages: Mapping[str, str], tmp_path: Path
) -> None:
    gen_reference.write(tmp_path, pages)
    (tmp_path / "limits.md").unlink()
    (tmp_path / "rumours.md").write_text("\n", encoding="utf-8")
    assert gen_reference.find_drift(tmp_path, pages) == ["limits.md", "rumours.md"]
