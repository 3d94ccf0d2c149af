"""The runs of a home that was copied belong to the original, whatever their records name."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.process_table import is_living
from holon.adapters.exec.run_folder import RunFolder
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.home_identity import FileIdentity, new_identity
from holon.model.tasks import CommandSpec
from holon.ports.tasks import RunningCommand

ORIGINAL = new_identity(Path("/original"), FileIdentity(1, 1))
COPY = new_identity(Path("/copy"), FileIdentity(1, 2))


@pytest.fixture
def original(tmp_path: Path) -> Iterator[LocalShell]:
    made = shell_of(tmp_path / "original")
    made.belong_to(ORIGINAL)
    yield made
    made.close()


def shell_of(root: Path) -> LocalShell:
    return LocalShell(root, os.environ, SystemClock())


async def waiting(shell: LocalShell) -> RunningCommand:
    return await shell.start(CommandSpec(run_id="run_1", cmd="sleep 600", workdir="/"))


def copied(root: Path) -> LocalShell:
    """A shell on a copy of the runs."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    made = shell_of(copy)
    made.belong_to(COPY)
    return made


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
async def test_a_run_of_the_original_is_neither_found_nor_ended_and_its_files_can_go(
    original: LocalShell, tmp_path: Path
) -> None:
    command = await waiting(original)
    shell, root = copied(tmp_path / "original"), tmp_path / "copy"
    assert await shell.attach("run_1") is None
    assert await shell.unended_runs() == []
    assert [run.run_id for run in await shell.ended_runs()] == ["run_1"]
    await shell.forget("run_1")
    shell.close()
    assert not (root / "run_1").exists()
    assert is_living(RunFolder(tmp_path / "original" / "run_1").read().supervisor)
    assert await original.unended_runs() == ["run_1"]
    await command.stop(force=True)


@pytest.mark.requirement("home:a-copy-leaves-the-original-alone")
async def test_a_run_of_a_version_before_homes_had_an_identity_is_known_by_its_folder(
    tmp_path: Path,
) -> None:
    older = shell_of(tmp_path / "original")
    command = await waiting(older)
    shell = copied(tmp_path / "original")
    assert await shell.attach("run_1") is None
    assert await shell.unended_runs() == []
    newer = shell_of(tmp_path / "original")
    newer.belong_to(ORIGINAL)
    found = await newer.attach("run_1")
    assert found is not None, "a home that was not copied takes up what an older version started"
    await command.stop(force=True)
    for made in (older, newer, shell):
        made.close()


async def test_a_run_of_the_original_that_had_ended_can_be_looked_at_in_the_copy(
    original: LocalShell, tmp_path: Path
) -> None:
    spec = CommandSpec(run_id="run_2", cmd="echo kept", workdir="/")
    assert (await (await original.start(spec)).wait()).exit_status == 0
    shell = copied(tmp_path / "original")
    found = await shell.attach("run_2")
    assert found is not None
    assert found.exit is not None
    assert found.output(head_bytes=64, tail_bytes=0)[0].head == b"kept\n"
    shell.close()


async def test_a_record_names_the_home_that_started_the_run(
    original: LocalShell, tmp_path: Path
) -> None:
    command = await waiting(original)
    asked = RunFolder(tmp_path / "original" / "run_1").read().command
    assert asked["home"] == msgspec.to_builtins(ORIGINAL)
    await command.stop(force=True)
