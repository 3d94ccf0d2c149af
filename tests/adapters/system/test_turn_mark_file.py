"""The mark of a turn outlives the process that made it, and is counted once."""

from pathlib import Path

import pytest

from holon.adapters.system.turn_mark_file import TurnMarkFile
from holon.model.values import TurnId


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


@pytest.mark.requirement("hostile-text:a-turn-that-ends-the-process-twice-is-set-aside")
def test_a_mark_that_was_not_taken_back_is_found_by_the_next_process_alone(home: Path) -> None:
    TurnMarkFile(home).enter(TurnId("turn_1"))
    assert TurnMarkFile(home).left_by == "turn_1"
    assert TurnMarkFile(home).left_by is None


def test_a_mark_that_was_taken_back_is_not_found(home: Path) -> None:
    mark = TurnMarkFile(home)
    mark.enter(TurnId("turn_1"))
    mark.leave()
    mark.close()
    mark.enter(TurnId("turn_2"))
    assert TurnMarkFile(home).left_by is None


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"../../x\n", b"a" * 4_096, b"turn 1 2\n"])
def test_a_file_that_holds_no_mark_is_none(home: Path, content: bytes) -> None:
    (home / "run" / "turn").write_bytes(content)
    assert TurnMarkFile(home).left_by is None


def test_without_a_place_for_it_everything_else_goes_on(tmp_path: Path) -> None:
    mark = TurnMarkFile(tmp_path)
    mark.enter(TurnId("turn_1"))
    mark.leave()
    assert mark.left_by is None


def test_a_link_in_its_place_is_not_followed(home: Path) -> None:
    strange = home / "strange"
    strange.write_bytes(b"theirs\n")
    (home / "run" / "turn").symlink_to(strange)
    TurnMarkFile(home).enter(TurnId("turn_1"))
    assert strange.read_bytes() == b"theirs\n"
