"""The ledger of episodes in an agent's home: whole lines at the end, never through a link."""

import os
from pathlib import Path

import msgspec
import pytest

from holon.adapters.files.episode_ledger import FileEpisodeLedger
from holon.model.memory.records import EpisodeRecord
from holon.ports.memory import LedgerError
from tests.decide.memory_rows import an_episode

LEDGER = FileEpisodeLedger()


def file_of(home: Path) -> Path:
    return home / ".holon" / "ledger" / "context_episodes.jsonl"


def episodes_in(home: Path) -> list[EpisodeRecord]:
    lines = file_of(home).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=EpisodeRecord) for line in lines]


@pytest.mark.requirement("episode:ledger")
async def test_episodes_are_added_as_whole_lines_in_order(tmp_path: Path) -> None:
    assert await LEDGER.last_id(str(tmp_path)) is None
    await LEDGER.append(str(tmp_path), [an_episode(1), an_episode(2, summary="é\nü")])
    await LEDGER.append(str(tmp_path), [an_episode(3)])
    assert episodes_in(tmp_path) == [an_episode(1), an_episode(2, summary="é\nü"), an_episode(3)]
    assert await LEDGER.last_id(str(tmp_path)) == "ep_3"
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("episode:ledger")
@pytest.mark.parametrize("torn", [b'{"id":"ep_2","agent', b"\x00\x00", b'{"id":"ep_2"}'])
async def test_a_line_that_was_cut_short_goes_before_the_next_is_added(
    tmp_path: Path, torn: bytes
) -> None:
    await LEDGER.append(str(tmp_path), [an_episode(1)])
    with file_of(tmp_path).open("ab") as ledger:
        ledger.write(torn)
    assert await LEDGER.last_id(str(tmp_path)) == "ep_1"
    await LEDGER.append(str(tmp_path), [an_episode(2)])
    assert episodes_in(tmp_path) == [an_episode(1), an_episode(2)]


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[]",
        b'{"id":"\xff"}',
        b'{"note":' + b"[" * 20_000 + b"]" * 20_000 + b',"id":"ep_9"}',
    ],
    ids=["no json", "no episode", "no text", "too deep"],
)
async def test_lines_of_somebody_else_are_passed_over(tmp_path: Path, line: bytes) -> None:
    await LEDGER.append(str(tmp_path), [an_episode(1)])
    with file_of(tmp_path).open("ab") as ledger:
        ledger.write(line + b"\n")
    assert await LEDGER.last_id(str(tmp_path)) == "ep_1"
    await LEDGER.append(str(tmp_path), [an_episode(2)])
    assert await LEDGER.last_id(str(tmp_path)) == "ep_2"


async def test_an_agent_without_a_home_has_no_ledger(tmp_path: Path) -> None:
    home = tmp_path / "nobody"
    await LEDGER.append(str(home), [an_episode(1)])
    assert await LEDGER.last_id(str(home)) is None
    assert not home.exists()


@pytest.mark.parametrize(
    "what", [".holon", ".holon/ledger", ".holon/ledger/context_episodes.jsonl"]
)
async def test_nothing_is_written_through_a_link(tmp_path: Path, what: str) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    outside.mkdir()
    link = home / what
    link.parent.mkdir(parents=True)
    target = outside if not what.endswith(".jsonl") else outside / "secrets"
    link.symlink_to(target)
    with pytest.raises(LedgerError):
        await LEDGER.append(str(home), [an_episode(1)])
    assert list(outside.iterdir()) == []


async def test_something_that_is_no_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir(parents=True)
    os.mkfifo(file_of(tmp_path))
    with pytest.raises(LedgerError, match="no regular file"):
        await LEDGER.append(str(tmp_path), [an_episode(1)])
