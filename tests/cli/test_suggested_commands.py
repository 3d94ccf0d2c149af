"""A command that is suggested works on the home that was named."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from holon.adapters.system.run_files import RunFiles, RuntimeRecord, own_identity
from holon.cli.console import exit_codes
from holon.cli.console.options import home_option, with_home
from holon.cli.main import main
from tests.cli.operator_desk import Desk
from tests.surfaces.test_command_tree import TREE


def leaves() -> list[tuple[str, bool]]:
    """Every command, and whether it works on a home."""
    return [
        (" ".join(path), any(option.name == "home" for option in command.params))
        for path, command in TREE.items()
        if not isinstance(command, click.Group)
    ]


def told(text: str, *arguments: str) -> str:
    @click.command()
    @home_option
    def command(home: Path) -> None:
        click.echo(with_home(text))

    return CliRunner(env={"HOLON_HOME": "/elsewhere"}).invoke(command, arguments).stdout.strip()


@pytest.mark.parametrize(("command", "has_home"), leaves())
def test_every_command_that_works_on_a_home_is_suggested_with_it(
    command: str, has_home: bool
) -> None:
    flag = " --home '/a b'" if has_home else ""
    named = ("--home", "/a b")
    assert told(command, *named) == f"{command}{flag}"
    assert told(f"see: `{command} X --json`.", *named) == f"see: `{command}{flag} X --json`."


def test_a_home_of_the_environment_is_there_for_the_next_command_too() -> None:
    assert told("start one with: holon daemon start") == "start one with: holon daemon start"


def test_several_commands_each_get_the_home() -> None:
    both = "holon daemon stop && holon daemon start --port 1"
    assert told(both, "--home", "/h") == (
        "holon daemon stop --home /h && holon daemon start --home /h --port 1"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("prompt", "hi"), "holon daemon start --home {home}"),
        (("prompt", "hi", "--json"), "holon daemon start --home {home}"),
        (("daemon", "status"), "holon daemon start --home {home}"),
        (("daemon", "status", "--json"), "holon daemon start --home {home}"),
        (("config", "get", "model.default"), "holon config set --home {home} model.default"),
        (("onboard", "--json"), "holon config set --home {home} model.default"),
        (("onboard", "--json"), "`holon config models list --home {home}` shows some"),
    ],
)
def test_what_a_command_suggests_names_the_home_it_was_given(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    home = tmp_path / "h"
    done = CliRunner(env={"HOLON_HOME": None}).invoke(main, [*arguments, "--home", str(home)])
    assert done.exit_code in (exit_codes.FAILED, exit_codes.OK)
    assert words.format(home=home) in done.output


def test_a_script_is_told_the_home_as_well(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["prompt", "hi", "--json", "--home", str(tmp_path)])
    assert f"holon daemon start --home {tmp_path}" in json.loads(done.stdout)["hint"]


@pytest.mark.parametrize(
    "change",
    [
        ("set", "templates.github_base", "https://example.com"),
        ("providers", "set", "box", "--base-url", "http://127.0.0.1:1/v1"),
        ("providers", "set", "box", "--base-url", "http://127.0.0.1:1/v1", "--json"),
        ("providers", "remove", "box"),
    ],
)
def test_a_change_beside_a_service_names_the_restart_of_that_home(
    change: tuple[str, ...], tmp_path: Path
) -> None:
    home, we = tmp_path / "h", own_identity()
    files = RunFiles(home)
    files.folder.mkdir(parents=True, mode=0o700)
    files.write_record(RuntimeRecord(pid=we.pid, start_ticks=we.start_ticks, boot_id=we.boot_id))
    (home / "config.toml").write_text('[providers.box]\nbase_url = "http://127.0.0.1:2"\n')
    done = CliRunner().invoke(main, ["config", *change, "--home", str(home)])
    assert done.exit_code == exit_codes.OK
    assert f"until: holon daemon restart --home {home}\n" in done.stderr


async def test_a_trigger_without_an_address_is_replaced_in_that_home(desk: Desk) -> None:
    home = str(desk.server.home)
    await desk.said("trigger", "revoke")
    done = await desk.holon("trigger", "url", "--home", home)
    assert f"with: holon trigger rotate --home {home} --agent main\n" in done.stderr


async def test_output_that_was_cut_is_looked_for_in_that_home_and_with_that_agent(
    desk: Desk,
) -> None:
    home = str(desk.server.home)
    started = await desk.told("task", "run", "Count", "--cmd", "seq 99999")
    task_id = started["task"]["task_id"]
    looked = ("task", "output", task_id, "--block")
    done = await desk.holon(*looked, "--home", home, "--agent", "main")
    see = f"holon task status --home {home} {task_id} --agent main"
    assert done.stderr == f"holon: the output is truncated; see {see}\n"
    done = await desk.holon(*looked)
    assert done.stderr == f"holon: the output is truncated; see holon task status {task_id}\n"
