"""Names are offered at a press of Tab: agents, models, providers, settings and their values."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from anyio import to_thread
from click.shell_completion import ShellComplete

from holon.cli.console.completion import (
    complete_agent,
    complete_model,
    complete_provider,
    complete_setting,
)
from holon.cli.main import main
from holon.config.setting_keys import find_key
from holon.config.settings import SETTINGS
from tests.cli.operator_desk import Desk


def completed(*arguments: str, incomplete: str = "") -> list[str]:
    shell = ShellComplete(main, {}, "holon", "_HOLON_COMPLETE")
    return [each.value for each in shell.get_completions([*arguments], incomplete)]


def offered(*arguments: str, incomplete: str = "") -> list[str]:
    return completed(*arguments, "--agent", incomplete=incomplete)


def commands(
    group: click.Group, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name."""
    with click.Context(group) as ctx:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from commands(command, (*above, name))
            else:
                yield " ".join((*above, name)), command


# What an agent is called that does not exist yet cannot be offered.
NEW: Final = {("agent create", "agent")}
OFFERS: Final = {
    "agent": complete_agent,
    "model": complete_model,
    "ref": complete_model,
    "key": complete_setting,
    "provider": complete_provider,
}


@pytest.mark.requirement("completion:knows-names")
def test_every_command_that_takes_a_name_offers_those_there_are() -> None:
    seen = set[str]()
    for name, command in commands(main):
        for param in command.params:
            if param.name in OFFERS and (name, param.name) not in NEW:
                seen.add(param.name)
                assert param._custom_shell_complete is OFFERS[param.name], (name, param.name)
    assert seen == set(OFFERS)


@pytest.mark.requirement("completion:knows-names")
def test_keys_of_settings_are_offered_and_values_where_they_can_be_listed(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[model]\ndefault = "mine/thinker"\n[providers.mine]\nbase_url = "http://127.0.0.1:1"\n'
    )
    home = ("--home", str(tmp_path))

    def config(*words: str, incomplete: str) -> list[str]:
        return completed("config", words[0], *home, *words[1:], incomplete=incomplete)

    assert config("get", incomplete="model.d") == ["model.default"]
    assert set(config("get", incomplete="")) == {one.key for one in SETTINGS if not one.is_family}
    assert config("set", incomplete="providers.mine.b") == ["providers.mine.base_url"]
    for key in config("unset", incomplete="models.catalog.mine"):
        assert str(find_key(key)).startswith('models.catalog."mine/thinker".')
    assert config("set", "model.default", incomplete="mine/") == ["mine/thinker"]
    assert config("set", "model.fallbacks", incomplete="mine/thinker,openai/gpt-5.4")
    assert config("set", "providers.mine.schema_mode", incomplete="") == ["relaxed", "strict"]
    assert config("set", "providers.mine.stream", incomplete="t") == ["true"]
    assert config("set", "no.such.key", incomplete="") == []
    assert completed("agent", "model", "set", *home, incomplete="mine/") == ["mine/thinker"]
    assert "mine" in completed("config", "models", "list", *home, "--provider")


@pytest.mark.parametrize("content", ["[model", "[no]\nsuch = 1\n", None])
def test_a_broken_configuration_still_offers_what_ships(
    tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "config.toml").write_text(content)
    found = completed("agent", "model", "set", "--home", str(tmp_path), incomplete="anthropic/")
    assert found
    assert capsys.readouterr() == ("", "")


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
