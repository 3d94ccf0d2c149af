"""`holon config providers`: manage provider settings.

Owns:  the output of these commands. A provider is a group of settings under `providers.<id>`, which
       are written in one edit or not at all.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from holon.cli.config.values import in_words, warn_if_served
from holon.cli.console.completion import complete_provider
from holon.cli.console.lazy_group import LazyCommand, LazyGroup
from holon.cli.console.options import echo_json, home_option, json_option

if TYPE_CHECKING:
    from holon.config.load_settings import Settings, SettingValue
    from holon.model.values import JsonValue

_HERE: Final = "holon.cli.config.providers"

PROVIDER_COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "set": LazyCommand(_HERE, "set_provider", "Add a provider, or change its settings."),
        "get": LazyCommand(_HERE, "get_provider", "Print the configuration of a provider."),
        "list": LazyCommand(_HERE, "list_providers", "List every known provider."),
        "remove": LazyCommand(_HERE, "remove_provider", "Remove the configuration of a provider."),
        "doctor": LazyCommand(
            "holon.cli.config.doctor",
            "providers_doctor",
            "Check every configured provider, or the one with this ID.",
        ),
    }
)

# Which option writes which setting.
_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "transport": "transport",
        "base_url": "base_url",
        "credential_source": "auth.source",
        "credential_kind": "auth.kind",
        "credential_env": "auth.env",
        "credential_profile": "auth.profile",
        "credential_external": "auth.external",
    }
)

# What a source cannot be used without.
_NEEDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "env": "auth.env",
        "credential_profile": "auth.profile",
        "credential_process": "auth.external",
    }
)


@click.group(cls=LazyGroup, table=PROVIDER_COMMANDS)
def providers() -> None:
    """Manage the providers of models.

    \b
    Examples:
      holon config providers list
      holon config providers set openai --credential-source env --credential-env MY_OPENAI_KEY
      holon config providers set box --transport openai_chat_completions --base-url http://box:8000/v1
      holon config providers doctor
    """


@click.command("set")
@click.argument("provider", metavar="ID", shell_complete=complete_provider)
@click.option(
    "--transport",
    metavar="WIRE",
    help="openai_responses, openai_codex_responses, openai_chat_completions or anthropic_messages.",
)
@click.option("--base-url", metavar="URL", help="Its base URL, without the path of the protocol.")
@click.option(
    "--credential-source",
    metavar="SOURCE",
    help="env, credential_profile, credential_process, external_cli or none.",
)
@click.option(
    "--credential-kind",
    metavar="KIND",
    help="api_key, bearer_token, o_auth, session_token or none.",
)
@click.option("--credential-env", metavar="NAME", help="The variable, for the source env.")
@click.option(
    "--credential-profile", metavar="NAME", help="The profile, for the source credential_profile."
)
@click.option(
    "--credential-external",
    metavar="PROGRAM",
    help="The program, for the sources credential_process and external_cli.",
)
@home_option
@json_option
def set_provider(provider: str, home: Path, as_json: bool, **options: str | None) -> None:
    """Add a provider, or change its settings.

    Only the given options change. A provider that is not in the catalog needs --base-url.

    \b
    Examples:
      holon config providers set openai --credential-source env --credential-env MY_OPENAI_KEY
      holon config providers set anthropic --credential-source credential_profile \\
          --credential-profile work --credential-kind api_key
      holon config providers set box --transport openai_chat_completions \\
          --base-url http://127.0.0.1:8000/v1
    """
    from holon.config.edit_file import set_values
    from holon.config.load_settings import read_text
    from holon.config.setting_keys import find_key

    given = {option: text for option, text in options.items() if text is not None}
    if not given:
        raise click.UsageError("give at least one setting, for example --base-url")
    values = {}
    for option, text in given.items():
        key = find_key(f'providers."{provider}".{_OPTIONS[option]}')
        values[key] = read_text(key, text, where=f"--{option.replace('_', '-')}")
    fields = {key.setting.key.partition(">.")[2]: str(value) for key, value in values.items()}
    _require_usable(home, provider, fields)
    set_values(home, values)
    if as_json:
        echo_json({"id": provider, "set": {str(key): value for key, value in values.items()}})
    else:
        for key, value in values.items():
            click.echo(f"{key} = {in_words(value)}")
    warn_if_served(home)


def _require_usable(home: Path, provider: str, fields: Mapping[str, str]) -> None:
    """Refuse settings of a provider that could never work."""
    from holon.config.config_file import read_config

    kept = {path for path, _ in read_config(home).leaves() if path[:2] == ("providers", provider)}
    present = set(fields) | {".".join(path[2:]) for path in kept}
    if "base_url" not in present and provider not in _builtin():
        raise _unknown_provider(provider, "give --base-url to add a new one")
    needed = _NEEDS.get(fields.get("auth.source", ""))
    if needed is not None and needed not in present:
        option = next(option for option, field in _OPTIONS.items() if field == needed)
        raise click.UsageError(
            f"--credential-source {fields['auth.source']} needs --{option.replace('_', '-')}"
        )


@click.command("get")
@click.argument("provider", metavar="ID", shell_complete=complete_provider)
@home_option
@json_option
def get_provider(provider: str, home: Path, as_json: bool) -> None:
    """Print the configuration of a provider.

    Other values come from the catalog; `holon config providers doctor` shows both.

    \b
    Examples:
      holon config providers get openai
      holon config providers get openai --json
    """
    from holon.config.load_settings import load_settings

    values = _values_of(load_settings(home, os.environ), provider)
    builtin = provider in _builtin()
    if not values and not builtin:
        raise _unknown_provider(provider, "`holon config providers list` shows all of them")
    if as_json:
        rows = {field: _row(value) for field, value in values.items()}
        echo_json({"id": provider, "builtin": builtin, "settings": rows})
        return
    if not values:
        click.echo(f"{provider} is built in; nothing is configured for it")
    for value in values.values():
        click.echo(f"{value.key} = {in_words(value.value)}  ({value.where})")


@click.command("list")
@home_option
@json_option
def list_providers(home: Path, as_json: bool) -> None:
    """List every known provider.

    \b
    With --json:
      {"providers": [{"id": "openai", "builtin": true, "configured": false}]}

    \b
    Examples:
      holon config providers list
      holon config providers list --json | jq '.providers[] | select(.configured)'
    """
    from holon.config.load_settings import load_settings

    configured = set(load_settings(home, os.environ).plane.providers)
    rows: list[JsonValue] = [
        {"id": name, "builtin": name in _builtin(), "configured": name in configured}
        for name in sorted(configured | _builtin())
    ]
    if as_json:
        echo_json({"providers": rows})
        return
    for row in rows:
        marks = [mark for mark in ("configured", "builtin") if row[mark]]
        click.echo(f"{row['id']}  ({', '.join(marks).replace('builtin', 'built in')})")


@click.command("remove")
@click.argument("provider", metavar="ID", shell_complete=complete_provider)
@home_option
@json_option
def remove_provider(provider: str, home: Path, as_json: bool) -> None:
    """Remove the configuration of a provider.

    A built-in provider reverts to its catalog entry; its credentials are kept.

    \b
    Examples:
      holon config providers remove box
    """
    from holon.config.config_file import config_path, read_config
    from holon.config.edit_file import unset_value

    path = ("providers", provider)
    found = any(leaf[:2] == path for leaf, _ in read_config(home).leaves())
    if not found:
        raise _unknown_provider(provider, "`holon config list` shows what is", verb="configured")
    unset_value(home, path)
    if as_json:
        echo_json({"id": provider, "removed": True, "file": str(config_path(home))})
    else:
        click.echo(f"{provider} is removed from {config_path(home)}")
    warn_if_served(home)


def _builtin() -> set[str]:
    from holon.adapters.providers.catalog import builtin_catalog

    return set(builtin_catalog().providers)


def _values_of(settings: "Settings", provider: str) -> "dict[str, SettingValue]":
    return {
        value.key.setting.key.partition(">.")[2]: value
        for _, value in sorted(settings.values.items())
        if value.key.name == provider and value.key.setting.key.startswith("providers.")
    }


def _row(value: "SettingValue") -> "JsonValue":
    return {"value": value.value, "source": value.source, "where": value.where}


def _unknown_provider(provider: str, hint: str, *, verb: str = "known") -> Exception:
    import difflib

    from holon.config.config_file import UnknownSettingError

    near = difflib.get_close_matches(provider, sorted(_builtin()), n=1)
    meant = f"did you mean {near[0]}? " if near and near[0] != provider else ""
    return UnknownSettingError(f"the provider {provider!r} is not {verb}", hint=f"{meant}{hint}")
