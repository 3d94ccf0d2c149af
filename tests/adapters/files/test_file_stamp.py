"""When a file may be taken for the one that was read."""

import os
import time
from pathlib import Path

from holon.adapters.files.openat import TICK_NS, lasting_stamp, stamp_of


def test_a_file_that_has_just_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("kind")
    facts = file.stat()
    assert lasting_stamp(facts, now_ns=facts.st_ctime_ns + TICK_NS) is None
    assert lasting_stamp(facts, now_ns=facts.st_ctime_ns - TICK_NS) is None, "a clock went back"
    assert lasting_stamp(facts, now_ns=facts.st_ctime_ns + TICK_NS + 1) == stamp_of(file.stat())


def test_a_change_shows_although_size_and_time_were_put_back(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("kind")
    before = file.stat()
    while time.time_ns() - before.st_ctime_ns <= TICK_NS:
        continue
    file.write_text("mean")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert stamp_of(file.stat()) != stamp_of(before)
