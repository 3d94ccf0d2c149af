"""Which home this is: a folder, whatever its path; and whose the record of a service is."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from holon.adapters.system.home_identity import new_identity, place_of
from holon.adapters.system.run_files import RunFiles, RuntimeRecord, own_identity


def served(home: Path) -> RunFiles:
    """The files of a home that this process serves."""
    files = RunFiles(home)
    files.folder.mkdir(parents=True, mode=0o700)
    place = place_of(home)
    assert place is not None
    me = own_identity()
    files.write_record(
        RuntimeRecord(
            pid=me.pid,
            start_ticks=me.start_ticks,
            boot_id=me.boot_id,
            home_dir=str(home),
            home=new_identity(home, place),
        )
    )
    return files


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
def test_a_copied_record_is_no_record_of_the_copy(tmp_path: Path) -> None:
    files = served(tmp_path / "home")
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    copy = RunFiles(tmp_path / "copy")
    assert files.read_record() is not None
    assert files.read_copied_record() is None
    assert copy.read_record() is None
    copied = copy.read_copied_record()
    assert copied is not None
    assert copied.home is not None
    assert copied.home.path == str(tmp_path / "home")


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
def test_a_copied_record_of_a_version_before_is_known_by_its_path(tmp_path: Path) -> None:
    files = served(tmp_path / "home")
    files.write_record(RuntimeRecord(pid=1, home_dir=str(tmp_path / "home")))
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    assert files.read_record() is not None
    assert RunFiles(tmp_path / "copy").read_record() is None
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert RunFiles(tmp_path / "link").read_record() is not None


@pytest.mark.requirement("home:a-moved-home-goes-on")
def test_the_record_of_a_moved_home_stays_its_own(tmp_path: Path) -> None:
    served(tmp_path / "home")
    (tmp_path / "home").rename(tmp_path / "moved")
    assert RunFiles(tmp_path / "moved").read_record() is not None


@pytest.mark.requirement("home:a-moved-home-goes-on")
@pytest.mark.parametrize(
    ("boot", "is_own"), [("an earlier boot", True), (None, False)], ids=["earlier boot", "this one"]
)
def test_a_disk_that_has_another_number_is_another_disk_within_one_boot_only(
    tmp_path: Path, boot: str | None, is_own: bool
) -> None:
    files = served(tmp_path / "home")
    record = files.read_record()
    assert record is not None
    assert record.home is not None
    elsewhere = replace(record.home, device=record.home.device + 1)
    files.write_record(replace(record, home=elsewhere, boot_id=boot or record.boot_id))
    assert (files.read_record() is not None) is is_own
    assert (files.read_copied_record() is None) is is_own


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
def test_a_record_of_an_earlier_boot_is_copied_where_the_folder_is_another(tmp_path: Path) -> None:
    files = served(tmp_path / "home")
    record = files.read_record()
    assert record is not None
    files.write_record(replace(record, boot_id="an earlier boot"))
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    assert RunFiles(tmp_path / "copy").read_record() is None
