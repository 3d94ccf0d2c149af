"""A log that is moved aside while it is written, by one process or several."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holon.adapters.system.logs import RotatingLog, earlier_log
from holon.adapters.system.run_files import UnsafePathError

LINE = b"x" * 99 + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "daemon.log"


@pytest.mark.requirement("journal:the-log-is-bounded-while-it-is-written")
def test_the_log_never_grows_beyond_its_bound_and_one_earlier_one_is_kept(path: Path) -> None:
    with closing(RotatingLog(path, bytes_max=1_000)) as log:
        for _ in range(57):
            log.append(LINE)
            assert path.stat().st_size <= 1_000
    assert (path.stat().st_size, earlier_log(path).stat().st_size) == (700, 1_000)
    assert sorted(each.name for each in path.parent.iterdir()) == ["daemon.log", "daemon.log.1"]
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}


def test_a_line_longer_than_the_bound_is_still_written_once(path: Path) -> None:
    with closing(RotatingLog(path, bytes_max=10)) as log:
        log.append(LINE)
        log.append(LINE)
    assert (path.read_bytes(), earlier_log(path).read_bytes()) == (LINE, LINE)


def test_two_writers_share_a_log_and_lose_no_line_at_a_turn(path: Path) -> None:
    with (
        closing(RotatingLog(path, bytes_max=1_000)) as one,
        closing(RotatingLog(path, bytes_max=1_000)) as other,
    ):
        for _ in range(8):
            one.append(LINE)
            other.append(LINE)
    assert path.stat().st_size + earlier_log(path).stat().st_size == 16 * len(LINE)


@pytest.mark.parametrize("how", ["moved", "removed"])
def test_a_log_that_somebody_took_away_is_begun_anew(path: Path, how: str) -> None:
    with closing(RotatingLog(path)) as log:
        log.append(LINE)
        if how == "moved":
            path.rename(path.with_name("elsewhere"))
        else:
            path.unlink()
        log.append(b"after\n")
    assert path.read_bytes() == b"after\n"


def test_a_link_put_in_its_place_meanwhile_is_not_followed(path: Path) -> None:
    precious = path.with_name("precious")
    precious.write_bytes(b"kept")
    with closing(RotatingLog(path)) as log:
        path.unlink()
        path.symlink_to(precious)
        with pytest.raises(UnsafePathError):
            log.append(LINE)
    assert precious.read_bytes() == b"kept"


PRINTS = """
import sys
from pathlib import Path
from holon.adapters.system.logs import RotatingLog
log = RotatingLog(Path(sys.argv[1]), bytes_max=100)
assert log.is_printed_to
log.append(b"x" * 99 + b"\\n")
log.append(b"after\\n")
print("printed after the turn", file=sys.stderr)
"""


def test_what_a_process_prints_follows_its_log(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        subprocess.run(
            [sys.executable, "-c", PRINTS, str(path)], stderr=handle, check=True, timeout=60
        )
    finally:
        os.close(handle)
    assert path.read_bytes() == b"after\nprinted after the turn\n"
