"""`holon config get`, `set`, `unset`, `list` and `schema`.

Owns:  the output of these commands; holon.config reads and writes settings.
Rule 1: a refused change has no effect.
Rule 2: a service reads its settings at start. A change while it runs prints a notice.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.console import exit_codes
from holon.cli.console.completion import complete_setting, complete_value
from holon.cli.console.options import echo_json, home_option, json_option, with_home

if TYPE_CHECKING:
    from holon.config.load_settings import Settings
    from holon.config.setting_keys import SettingKey
    from holon.config.value_types import PlainValue
    from holon.model.values import JsonValue


@click.command("get")
@click.argument("key", shell_complete=complete_setting)
@home_option
@json_option
def get_setting(key: str, home: Path, as_json: bool) -> None:
    """Print one setting.

    Exits with 1 if the setting has no value; with --json the value is null instead.

    \b
    Examples:
      holon config get model.default
      holon config get providers.openai.base_url
      holon config get 'models.catalog."openai/gpt-5.4".output_tokens_max'
      holon config get runtime.max_output_tokens --json
    """
    from holon.config.load_settings import load_settings
    from holon.config.setting_keys import find_key

    found = find_key(key)
    settings = load_settings(home, os.environ)
    if as_json:
        echo_json(_described(found, settings))
    elif str(found) in settings.values:
        click.echo(in_words(settings.values[str(found)].value))
    else:
        click.echo(f"holon: {found} is not set", err=True)
        set_it = with_home("holon config set")
        click.echo(f"       {set_it} {found} VALUE, {found.setting.value_type.expected}", err=True)
        sys.exit(exit_codes.FAILED)


@click.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key", shell_complete=complete_setting)
@click.argument("value", shell_complete=complete_value)
@home_option
@json_option
def set_setting(key: str, value: str, home: Path, as_json: bool) -> None:
    """Write one setting to config.toml.

    Comments and layout of the file are preserved. An unknown key or an invalid value is refused and
    the file left unchanged. The parts of a list are separated by commas.

    \b
    Examples:
      holon config set model.default anthropic/claude-sonnet-5-5
      holon config set model.fallbacks openai/gpt-5.4,deepseek/deepseek-flash
      holon config set runtime.max_output_tokens 16384
      holon config set 'models.catalog."openai/gpt-5.4".output_tokens_max' 32000
    """
    from holon.config.config_file import config_path
    from holon.config.edit_file import set_values
    from holon.config.load_settings import read_text
    from holon.config.setting_keys import find_key

    found = find_key(key)
    plain = read_text(found, value, where="the command line")
    set_values(home, {found: plain})
    if as_json:
        echo_json({"key": str(found), "value": plain, "file": str(config_path(home))})
    else:
        click.echo(f"{found} = {in_words(plain)}")
    _warn_of_models(home, found, plain)
    _warn_if_overruled(found)
    warn_if_served(home)


@click.command("unset")
@click.argument("key", shell_complete=complete_setting)
@home_option
@json_option
def unset_setting(key: str, home: Path, as_json: bool) -> None:
    """Remove one setting from config.toml.

    An unknown key can be removed too, if the file contains it.

    \b
    Examples:
      holon config unset model.fallbacks
      holon config unset providers.openai.base_url
    """
    from holon.config.config_file import config_path
    from holon.config.edit_file import unset_value
    from holon.config.setting_keys import dotted

    path = _path_in_file(home, key)
    removed = unset_value(home, path)
    if as_json:
        echo_json({"key": dotted(path), "removed": removed, "file": str(config_path(home))})
    else:
        deed = "is removed from" if removed else "was not in"
        click.echo(f"{dotted(path)} {deed} {config_path(home)}")
    if removed:
        warn_if_served(home)


@click.command("list")
@home_option
@json_option
def list_settings(home: Path, as_json: bool) -> None:
    """Print every setting and its source.

    \b
    With --json:
      {"home": "…", "file": "…/config.toml", "settings": [{"key": "model.default",
        "value": "openai/gpt-5.4", "source": "file", "where": "…/config.toml:2",
        "variable": "HOLON_MODEL", "expects": "…", "description": "…"}]}

    \b
    Examples:
      holon config list
      holon config list --json | jq '.settings[] | select(.source != "default")'
    """
    from holon.config.config_file import config_path
    from holon.config.load_settings import load_settings
    from holon.config.setting_keys import SettingKey
    from holon.config.settings import SETTINGS

    settings = load_settings(home, os.environ)
    fixed = {str(key): key for key in map(SettingKey, SETTINGS) if not key.setting.is_family}
    keys = fixed | {text: value.key for text, value in settings.values.items()}
    if as_json:
        rows = [_described(keys[text], settings) for text in sorted(keys)]
        echo_json({"home": str(home), "file": str(config_path(home)), "settings": rows})
        return
    for text in sorted(keys):
        click.echo(_line(keys[text], settings))


@click.command("schema")
@json_option
def schema(as_json: bool) -> None:
    """Print the JSON schema of config.toml.

    The output is always JSON; --json prints it on one line.

    \b
    Examples:
      holon config schema > holon.schema.json
    """
    import json

    from holon.config.setting_keys import config_schema

    if as_json:
        echo_json(config_schema())
    else:
        click.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))


def in_words(value: "PlainValue") -> str:
    """Format a value as on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _described(key: "SettingKey", settings: "Settings") -> "dict[str, JsonValue]":
    found = settings.values.get(str(key))
    return {
        "key": str(key),
        "value": None if found is None else found.value,
        "source": None if found is None else found.source,
        "where": None if found is None else found.where,
        "variable": key.variable,
        "expects": key.setting.value_type.expected,
        "description": key.setting.says,
    }


def _line(key: "SettingKey", settings: "Settings") -> str:
    found = settings.values.get(str(key))
    if found is None:
        return f"{key} is not set"
    value = in_words(found.value) or "nothing"
    return f"{key} = {value}  ({found.where or found.source.value})"


def _warn_of_models(home: Path, key: "SettingKey", value: "PlainValue") -> None:
    from holon.cli.config.provider_access import warn_of_models, warn_of_prices

    is_model = str(key) in ("model.default", "model.fallbacks")
    if is_model:
        warn_of_models(home, value if isinstance(value, tuple) else (str(value),))
    if is_model or str(key).endswith(".cost_cents_per_day"):
        warn_of_prices(home)


def _warn_if_overruled(key: "SettingKey") -> None:
    variable = key.variable
    if variable is not None and os.environ.get(variable, "").strip():
        click.echo(f"holon: {variable} is set and takes precedence over the file", err=True)


def warn_if_served(home: Path) -> None:
    """Print that a restart is needed, if a service of the home is running."""
    from holon.adapters.exec.process_table import is_living
    from holon.adapters.system.run_files import RunFiles

    record = RunFiles(home.absolute()).read_record()
    if record is not None and is_living(record.identity()):
        restart = with_home("holon daemon restart")
        click.echo(f"holon: a running service keeps the old value until: {restart}", err=True)


def _path_in_file(home: Path, text: str) -> tuple[str, ...]:
    """Return the path of a key; an unknown key must exist in the file."""
    from holon.config.config_file import UnknownSettingError, read_config
    from holon.config.setting_keys import find_key, path_of

    try:
        return find_key(text).path
    except UnknownSettingError:
        path = path_of(text)
        if path is None or path not in dict(read_config(home).leaves()):
            raise
        return path
