"""What this process uses."""

from pathlib import Path

import pytest

from holon.adapters.system import processes as module
from holon.adapters.system.processes import process_usage


def test_a_process_has_memory_and_has_used_time() -> None:
    used = process_usage()
    assert used.resident_bytes > 1_000_000
    assert used.cpu_s > 0


def test_where_the_present_size_cannot_be_read_the_largest_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STATM", tmp_path / "none")
    assert process_usage().resident_bytes > 1_000_000
