"""`holon config`: the command group.

Owns:  the table of its commands.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

from holon.cli.console.lazy_group import LazyCommand, LazyGroup

_VALUES: Final = "holon.cli.config.values"

CONFIG_COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "get": LazyCommand(_VALUES, "get_setting", "Print one setting."),
        "set": LazyCommand(_VALUES, "set_setting", "Write one setting to config.toml."),
        "unset": LazyCommand(_VALUES, "unset_setting", "Take one setting out of config.toml."),
        "list": LazyCommand(_VALUES, "list_settings", "Print every setting and its source."),
        "schema": LazyCommand(_VALUES, "schema", "Print the JSON schema of config.toml."),
        "doctor": LazyCommand(
            "holon.cli.config.doctor",
            "doctor",
            "Say whether the default model can be used, and how each provider is configured.",
        ),
        "models": LazyCommand(
            "holon.cli.config.models", "models", "Look at the models that can be named."
        ),
        "providers": LazyCommand(
            "holon.cli.config.providers", "providers", "The services models come from."
        ),
        "credentials": LazyCommand(
            "holon.cli.config.credentials", "credentials", "The secrets Holon keeps."
        ),
    }
)


@click.group(cls=LazyGroup, table=CONFIG_COMMANDS)
def config() -> None:
    """Settings, providers and credentials.

    A setting comes from its default, from config.toml under HOLON_HOME, from the environment, or
    from a flag; the later one wins.

    \b
    Examples:
      holon config list
      holon config set model.default openai/gpt-5.4
      holon config providers set ollama --base-url http://127.0.0.1:11434/v1
      holon config credentials set openai --kind api_key --stdin < key.txt
      holon config doctor
    """
