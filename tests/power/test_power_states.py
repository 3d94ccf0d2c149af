"""The enumerator of crash states itself: what it may take away, and what it may not."""

from collections.abc import Sequence

from tests.support.power_states import SECTOR_BYTES, draw_states
from tests.support.power_vfs import DiskOperation, Link, Sync, SyncNames, Truncate, Unlink, Write

MANY = range(300)
BORN: tuple[DiskOperation, ...] = (Link("a", 1), SyncNames())


def outcomes(*log: DiskOperation) -> list[dict[str, bytes]]:
    """Every distinct way the disk looks when the power goes after the whole log."""
    moments = range(len(log), len(log) + 1)
    drawn: Sequence[dict[str, bytes]] = [
        state.files for state in draw_states(log, MANY, seed=1, moments=moments)
    ]
    return [files for at, files in enumerate(drawn) if files not in drawn[:at]]


def test_what_was_synced_is_always_there() -> None:
    assert outcomes(*BORN, Write(1, 0, b"kept"), Sync(1)) == [{"a": b"kept"}]


def test_what_was_not_synced_may_be_there_or_not() -> None:
    found = outcomes(*BORN, Write(1, 0, b"old"), Sync(1), Write(1, 0, b"new"))
    assert {files["a"] for files in found} == {b"old", b"new"}


def test_later_writes_may_survive_without_earlier_ones() -> None:
    found = outcomes(*BORN, Write(1, 0, b"a"), Write(1, 1, b"b"))
    assert {files["a"] for files in found} == {b"", b"a", b"\0b", b"ab"}


def test_a_write_is_torn_only_between_sectors() -> None:
    sector = b"x" * SECTOR_BYTES
    found = outcomes(*BORN, Write(1, SECTOR_BYTES // 2, sector))
    gap = bytes(SECTOR_BYTES // 2)
    half = sector[: SECTOR_BYTES // 2]
    assert {files["a"] for files in found} == {
        b"",
        gap + sector,
        gap + half,
        gap + bytes(len(half)) + half,
    }


def test_a_truncation_may_be_lost_until_it_is_synced() -> None:
    written = (*BORN, Write(1, 0, b"long"), Sync(1), Truncate(1, 2))
    assert {files["a"] for files in outcomes(*written)} == {b"long", b"lo"}
    assert outcomes(*written, Sync(1)) == [{"a": b"lo"}]


def test_a_name_is_safe_only_when_the_directory_was_synced() -> None:
    found = outcomes(Link("a", 1), Write(1, 0, b"kept"), Sync(1))
    assert found in ([{}, {"a": b"kept"}], [{"a": b"kept"}, {}])
    assert outcomes(*BORN, Write(1, 0, b"kept"), Sync(1), Unlink("a"), SyncNames()) == [{}]


def test_the_same_number_draws_the_same_state() -> None:
    log = (*BORN, *(Write(1, at * 100, bytes([at]) * 3_000) for at in range(40)))
    once = list(draw_states(log, range(20), seed=5))
    assert once == list(draw_states(log, range(20), seed=5))
    assert once != list(draw_states(log, range(20), seed=6))
