"""docs/reference says what the code says, and the check that keeps it so can fail."""

from pathlib import Path

import pytest

from scripts import gen_reference


def test_the_reference_has_not_drifted_from_the_code() -> None:
    assert gen_reference.find_drift(gen_reference.FOLDER) == [], "run `make docs`"


@pytest.mark.parametrize("name", sorted(gen_reference.pages()))
def test_a_page_that_differs_is_reported(name: str, tmp_path: Path) -> None:
    for page, text in gen_reference.pages().items():
        (tmp_path / page).write_text(text, encoding="utf-8")
    assert gen_reference.find_drift(tmp_path) == []
    (tmp_path / name).write_text("something else\n", encoding="utf-8")
    assert gen_reference.find_drift(tmp_path) == [name]


def test_a_page_that_is_missing_or_belongs_to_nothing_is_reported(tmp_path: Path) -> None:
    for page, text in gen_reference.pages().items():
        (tmp_path / page).write_text(text, encoding="utf-8")
    (tmp_path / "limits.md").unlink()
    (tmp_path / "rumours.md").write_text("\n", encoding="utf-8")
    assert gen_reference.find_drift(tmp_path) == ["limits.md", "rumours.md"]
