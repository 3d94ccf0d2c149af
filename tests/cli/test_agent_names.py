"""Names of agents are offered at a press of Tab."""

from pathlib import Path

import pytest
from anyio import to_thread
from click.shell_completion import ShellComplete

from holon.cli.main import main
from tests.cli.operator_desk import Desk


def offered(*arguments: str, incomplete: str = "") -> list[str]:
    shell = ShellComplete(main, {}, "holon", "_HOLON_COMPLETE")
    return [each.value for each in shell.get_completions([*arguments, "--agent"], incomplete)]


async def test_the_agents_of_the_running_service_are_offered(desk: Desk) -> None:
    await desk.said("agent", "create", "builder")
    command = ("status", "--connect", f"unix:{desk.server.local.socket_path}")
    assert await to_thread.run_sync(lambda: offered(*command)) == ["builder", "main"]
    assert await to_thread.run_sync(lambda: offered(*command, incomplete="b")) == ["builder"]


def test_nothing_is_offered_and_nothing_said_where_no_service_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered("status", "--home", str(tmp_path / "none")) == []
    assert capsys.readouterr() == ("", "")
