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
        "unset": LazyCommand(_VALUES, "unset_setting", "Remove one setting from config.toml."),
        "list": LazyCommand(_VALUES, "list_settings", "Print every setting and its source."),
        "schema": LazyCommand(_VALUES, "schema", "Print the JSON schema of config.toml."),
        "doctor": LazyCommand(
            "holon.cli.config.doctor",
            "doctor",
            "Check whether the default model can be used, and how each provider is configured.",
        ),
        "models": LazyCommand("holon.cli.config.models", "models", "Show the known models."),
        "providers": LazyCommand(
            "holon.cli.config.providers", "providers", "Manage the providers of models."
        ),
        "credentials": LazyCommand(
            "holon.cli.config.credentials", "credentials", "Manage the secrets stored in a home."
        ),
    }
)


@click.group(cls=LazyGroup, table=CONFIG_COMMANDS)
def config() -> None:
    """Settings, providers and credentials.

    Sources of a setting, in increasing precedence: its default, config.toml under HOLON_HOME, the
    environment, the command line.

    \b
    Examples:
      holon config list
      holon config set model.default openai/gpt-5.4
      holon config providers set ollama --base-url http://127.0.0.1:11434/v1
      holon config credentials set openai --kind api_key --stdin < key.txt
      holon config doctor
    """
