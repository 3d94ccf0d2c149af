"""Files of others in a runtime's place: cleaned when that is safe, else left, and nobody is hurt.

How `holon daemon` treats strangers is in tests/daemon; this is the service itself.
"""

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from holon.adapters.exec.process_table import boot_id, identity_of
from holon.adapters.system.run_files import RunFiles, RuntimeRecord
from tests.hostile.served import PATIENCE_S, World, until


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has nothing to do with us, until its input ends."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        yield process
        assert process.poll() is None, "nobody may end a stranger"
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=PATIENCE_S)


@pytest.fixture
def files(world: World) -> RunFiles:
    made = RunFiles(world.home)
    made.folder.mkdir(parents=True, mode=0o700)
    world.home.chmod(0o700)
    return made


@pytest.mark.requirement("hostile:left-behind-is-cleaned")
@pytest.mark.requirement("hostile:strangers-are-left-alone")
def test_files_that_name_a_stranger_are_replaced_and_the_stranger_lives_on(
    world: World, files: RunFiles, stranger: "subprocess.Popen[bytes]"
) -> None:
    who = identity_of(stranger.pid)
    assert who is not None
    files.write_record(
        RuntimeRecord(pid=who.pid, start_ticks=who.start_ticks - 1, boot_id=boot_id())
    )
    (files.folder / "lock").write_text(f"{who.pid}\n", encoding="ascii")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(files.socket))  # and nobody listens
    with world.served() as served:
        record = files.read_record()
        assert record is not None
        assert record.pid == served.process.pid
        served.prompt("hello")
        until(served.is_at_rest)
        assert served.end() == 0


@pytest.mark.requirement("hostile:strangers-are-left-alone")
def test_a_service_does_not_take_a_socket_that_a_stranger_answers_on(
    world: World, files: RunFiles
) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(files.socket))
        files.socket.chmod(0o600)
        listening.listen()
        before = files.socket.lstat().st_ino
        done = world.refused()
        assert done.returncode != 0
        assert f"holon: another program responds on {files.socket}" in done.stderr
        assert "HOLON_HOME" in done.stderr
        assert "Traceback" not in done.stderr
        assert files.socket.lstat().st_ino == before
        listening.accept()[0].close()  # it was only asked whether it is there


@pytest.mark.requirement("hostile:strangers-are-left-alone")
def test_a_port_that_a_stranger_has_is_left_to_it(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*world.program, "serve", "--port", port],
            env=world.variables(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode != 0
    assert f"holon: cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not os.path.exists(world.home / "state"), "nothing was begun"
