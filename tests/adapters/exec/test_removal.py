"""Removing what ended commands left on disk."""

from pathlib import Path

from holon.adapters.exec.local_shell import REMOVED_PREFIX, FolderRemover
from holon.adapters.exec.run_folder import RunFolder


def a_folder(root: Path, name: str) -> RunFolder:
    folder = RunFolder(root / name)
    folder.make({"argv": []}, takes_input=False)
    (root / name / "stdout").write_bytes(b"words")
    return folder


def test_a_run_is_gone_at_once_and_its_files_when_the_shell_is_closed(tmp_path: Path) -> None:
    remover = FolderRemover(tmp_path)
    folders = [a_folder(tmp_path, f"run_{number}") for number in range(5)]
    for folder in folders:
        remover.remove(folder)
        assert not folder.exists()
    remover.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_runtime_was_about_to_remove_is_removed_by_the_next(tmp_path: Path) -> None:
    a_folder(tmp_path, f"{REMOVED_PREFIX}run_0")
    other_run = a_folder(tmp_path, "run_1")
    remover = FolderRemover(tmp_path)
    remover.remove(a_folder(tmp_path, "run_2"))
    remover.close()
    assert [path.name for path in tmp_path.iterdir()] == ["run_1"]
    assert other_run.exists()


def test_a_namesake_that_was_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    a_folder(tmp_path, f"{REMOVED_PREFIX}run_1")
    remover = FolderRemover(tmp_path)
    folder = a_folder(tmp_path, "run_1")
    remover.remove(folder)
    remover.remove(folder)  # nothing happens to what is gone already
    remover.close()
    assert not folder.exists()
