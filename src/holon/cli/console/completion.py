"""Shell completion: agents, models, settings and their values.

Owns:  finding the names quickly, and silently failing if that is not possible; the completion
       script, which calls `holon` on every Tab, so that it needs no update.
Rule 1: agents are read from the selected runtime; everything else from the home's settings and the
        data shipped with Holon.
Rule 2: names are completed without quotes, which shells remove; settings accept either form.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from holon.config.load_settings import Settings
    from holon.config.settings import Setting


_PATIENCE_S: Final = 0.5  # a longer pause feels like a broken shell
_NAMES_COUNT_MAX: Final = 200
_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_HOLON_COMPLETE"


def complete_agent(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete the agents of the selected runtime."""
    del param
    from holon.client.control_client import ControlClient
    from holon.client.endpoint import EndpointOptions, find_endpoint
    from holon.model.errors import HolonError

    given = ctx.params
    wanted = EndpointOptions(given.get("connect"), given.get("token"), given.get("token_file"))
    try:
        endpoint = find_endpoint(_home(ctx), wanted, os.environ)
        client = ControlClient(endpoint, timeout_s=_PATIENCE_S)
        found = client.get_json("/agents/list", query={"limit": _NAMES_COUNT_MAX})
        names = [str(each["identity"]["agent_id"]) for each in found]
    except (HolonError, OSError, LookupError, TypeError):  # a Tab is no place for a complaint
        return []
    return _offered(names, incomplete)


def complete_model(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete models of the catalog and the settings; after a comma, another one."""
    del param
    before, comma, _ = incomplete.rpartition(",")
    return _offered((f"{before}{comma}{name}" for name in _models(_settings(ctx))), incomplete)


def complete_provider(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete providers of the catalog and the settings."""
    del param
    return _offered(_providers(_settings(ctx)), incomplete)


def complete_setting(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete setting keys; those of a family once its prefix is typed."""
    del param
    from holon.config.settings import SETTINGS

    settings = _settings(ctx)
    keys = (key for one in SETTINGS for key in _keys(one, incomplete, settings))
    return _offered(keys, incomplete)


def complete_value(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete the values of the named setting, if they can be listed."""
    from holon.config.setting_keys import find_key
    from holon.config.value_types import (
        BooleanValue,
        ChoiceValue,
        ListValue,
        ModelRefValue,
        OpenChoiceValue,
    )
    from holon.model.errors import HolonError

    try:
        value_type = find_key(str(ctx.params.get("key"))).setting.value_type
    except HolonError:
        return []
    if isinstance(value_type, ListValue):
        value_type = value_type.part
    match value_type:
        case ChoiceValue(choices) | OpenChoiceValue(choices):
            return _offered(map(str, choices), incomplete)
        case ModelRefValue():
            return complete_model(ctx, param, incomplete)
        case BooleanValue():
            return _offered(("false", "true"), incomplete)
        case _:
            return []


def _keys(setting: "Setting", incomplete: str, settings: "Settings | None") -> Iterator[str]:
    if not setting.is_family:
        yield setting.key
        return
    head, _, rest = setting.key.partition("<")
    if not incomplete.startswith(head):
        return
    placeholder, _, field = rest.partition(">")
    for name in _names_for(placeholder, settings):
        yield f"{head}{name}{field}"


def _names_for(placeholder: str, settings: "Settings | None") -> Iterable[str]:
    match placeholder:
        case "id":
            return _providers(settings)
        case "ref":
            return _models(settings)
        case _:
            return () if settings is None else sorted(settings.webhooks)


def _models(settings: "Settings | None") -> list[str]:
    from holon.adapters.providers.catalog import builtin_catalog

    named = set(builtin_catalog().models)
    if settings is not None:
        plane = settings.plane
        preferred = (plane.model_default, *plane.model_fallbacks)
        named |= {*plane.models, *(str(ref) for ref in preferred if ref is not None)}
    return sorted(named)


def _providers(settings: "Settings | None") -> list[str]:
    from holon.adapters.providers.catalog import builtin_catalog

    named = set(builtin_catalog().providers)
    return sorted(named if settings is None else named | set(settings.plane.providers))


def _settings(ctx: click.Context) -> "Settings | None":
    from holon.config.load_settings import inspect_settings
    from holon.model.errors import HolonError

    try:
        return inspect_settings(_home(ctx), dict(os.environ)).settings
    except (HolonError, OSError):
        return None


def _home(ctx: click.Context) -> Path:
    given = ctx.params.get("home") or os.environ.get("HOLON_HOME") or Path.home() / ".holon"
    return Path(given).absolute()


def _offered(names: Iterable[str], incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Examples:
      holon completion bash > ~/.local/share/bash-completion/completions/holon
      holon completion zsh > "${fpath[1]}/_holon"
      holon completion fish > ~/.config/fish/completions/holon.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, f"click completes in no {shell}"
    root = click.get_current_context().find_root().command
    click.echo(_script(kind(root, {}, "holon", _VARIABLE)))


def _script(shell: "click.shell_completion.ShellComplete") -> str:
    """Return the script without checking the version of the shell."""
    return shell.source_template % shell.source_vars()
