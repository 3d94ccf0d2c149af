"""`holon onboard`: configures a model interactively.

Owns:  the questions on a terminal, and the report without one.
Rule 1: all questions come before the first write; an interruption changes nothing.
Rule 2: a secret is typed without echo, stored in the credentials file, and never shown.
Rule 3: without a terminal nothing is asked: the report lists what is configured, what is missing,
        and which commands come next.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holon.cli.config.provider_access import ProviderAccess, open_provider_access
from holon.cli.console import exit_codes
from holon.cli.console.options import echo_json, home_option, json_option, with_home
from holon.model.values import JsonValue

if TYPE_CHECKING:
    from holon.adapters.providers.catalog import ProviderRoute
    from holon.adapters.providers.doctor import DoctorReport, ProviderReport
    from holon.model.providers.models import CredentialKind, StoredCredential

_OFFERED: Final = ("anthropic", "openai", "openai-codex", "openrouter", "ollama", "local")


@click.command()
@json_option
@home_option
def onboard(as_json: bool, home: Path) -> None:
    """Configure a model: choose a provider, enter its key, choose a model.

    Interactive on a terminal. Otherwise, and with --json, it prints a report without secrets:

    \b
      {"status": "ready" | "trial" | "needs_setup",
       "sections": [{"id": "model", "status": "ok" | "missing", "detail": "…"}],
       "next_actions": [{"command": "holon config set model.default …", "why": "…"}]}

    \b
    Exit codes:
      0  a model can be used ("trial": only the built-in small one)
      1  no model can be used yet, or the questions were interrupted
      2  the configuration cannot be read or written

    \b
    Examples:
      holon onboard
      holon onboard --json | jq .next_actions
    """
    opened = open_provider_access(home)
    # One that is closed is no terminal either.
    if not as_json and all(each and each.isatty() for each in (sys.stdin, sys.stdout)):
        _ask(opened, home)
        return
    report = _report(opened, home)
    echo_json(report)
    if report["status"] == "needs_setup":
        sys.exit(exit_codes.FOUND_FAULTS)


def _report(opened: ProviderAccess, home: Path) -> dict[str, JsonValue]:
    from holon.adapters.providers.doctor import examine
    from holon.adapters.providers.last_failures import read_failures

    found = examine(opened.plane, read_failures(home), {})
    is_usable = found.is_usable and not opened.faults
    status = "needs_setup" if not is_usable else "trial" if found.note else "ready"
    return {
        "status": status,
        "sections": [
            {
                "id": "configuration",
                "status": "broken" if opened.faults else "ok",
                "detail": "; ".join(opened.faults) or f"read from {home}",
            },
            {
                "id": "model",
                "status": "ok" if found.is_usable else "missing",
                "detail": f"{found.default_model}: {found.problem or 'can be used'}",
            },
            *(_section(provider) for provider in found.providers),
        ],
        "next_actions": _next_actions(opened, found, status),
    }


def _section(provider: "ProviderReport") -> JsonValue:
    return {
        "id": f"provider:{provider.provider}",
        "status": "ok" if provider.reason is None else "missing",
        "detail": provider.reason or "can be used",
    }


def _next_actions(opened: ProviderAccess, found: "DoctorReport", status: str) -> JsonValue:
    actions: list[JsonValue] = []
    if opened.faults:
        actions.append(_action("holon config doctor", "some settings do not fit"))
    if status == "ready":
        return [*actions, _action("holon config doctor --probe", "see that the provider answers")]
    if found.default_is_chosen and found.hint is not None:
        actions.append(_action("holon config doctor", found.hint))
    provider = found.default_model.partition("/")[0] if found.default_is_chosen else "anthropic"
    give_key = f"holon config credentials set {provider} --kind api_key --stdin"
    actions.append(_action("holon onboard", "on a terminal: choose a provider and a model"))
    actions.append(_action(give_key, "store a key, typed or piped in"))
    choose = "holon config set model.default provider/model"
    return [*actions, _action(choose, "choose the model; `holon config models list` shows some")]


def _action(command: str, why: str) -> JsonValue:
    return {"command": with_home(command), "why": with_home(why)}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answers:
    """The answers of the operator."""

    provider: str
    model: str
    base_url: str | None
    credential: "StoredCredential | None"


def _ask(opened: ProviderAccess, home: Path) -> None:
    provider = _asked_provider(opened)
    route = opened.plane.route(provider)
    answers = _Answers(
        provider=provider,
        base_url=_asked_base_url(route),
        credential=_asked_credential(opened, route),
        model=_asked_model(provider),
    )
    _write(home, answers)
    click.echo(f"\n{answers.model} is now the default model of {home}.")
    report = _report(open_provider_access(home), home)
    if report["status"] != "ready":
        click.echo(with_home("The configuration is incomplete: run `holon config doctor`."))
    elif os.environ.get("HOLON_MODEL"):
        click.echo("HOLON_MODEL is set and takes precedence.")


def _asked_provider(opened: ProviderAccess) -> str:
    from holon.adapters.providers.catalog import builtin_catalog, known_providers
    from holon.model.errors import HolonError

    catalog = builtin_catalog().providers
    click.echo("Which provider?")
    for number, provider in enumerate(_OFFERED, start=1):
        click.echo(f"  {number}  {provider:<14} {catalog[provider].name}")
    others = [one for one in known_providers(opened.settings.plane) if one not in _OFFERED]
    click.echo(f"or one of: {', '.join(others)}")

    def chosen(text: str) -> str:
        said = text.strip()
        if said.isdecimal() and 1 <= int(said) <= len(_OFFERED):
            return _OFFERED[int(said) - 1]
        try:
            return opened.plane.route(said).provider
        except HolonError as error:
            raise click.UsageError(f"{error.message}; {error.hint}") from error

    asked: str = click.prompt("Provider", default="1", value_proc=chosen)
    return asked


def _asked_base_url(route: "ProviderRoute") -> str | None:
    from holon.adapters.providers.catalog import is_loopback
    from holon.config.load_settings import read_text
    from holon.config.setting_keys import find_key
    from holon.model.errors import HolonError

    if not route.base_url or not is_loopback(route.base_url.split("/")[2].rpartition(":")[0]):
        return None

    def fitting(text: str) -> str:
        try:
            said = read_text(find_key(f"providers.{route.provider}.base_url"), text, where="you")
        except HolonError as error:
            raise click.UsageError(error.message) from error
        return str(said)

    asked: str = click.prompt("Base URL", default=route.base_url, value_proc=fitting)
    return asked if asked != route.base_url else None


def _asked_credential(opened: ProviderAccess, route: "ProviderRoute") -> "StoredCredential | None":
    from holon.model.providers.models import StoredCredential

    state = opened.plane.credentials.chosen(route)
    if state.is_present:
        click.echo(f"Credential found: {state.source.value} {state.name}.")
        return None
    variables = [auth.env for auth in route.auth if auth.env]
    if not variables:
        if state.hint is not None:
            click.echo(f"It needs a login: {state.hint}.")
        return None
    click.echo(f"Its key can be set in {' or '.join(variables)}, or stored by Holon.")
    material: str = click.prompt(
        "Key (not shown; empty to give it later)", default="", hide_input=True, show_default=False
    )
    if not material.strip():
        return None
    return StoredCredential(kind=_key_kind(route), material=material.strip())


def _key_kind(route: "ProviderRoute") -> "CredentialKind":
    from holon.model.providers.models import CredentialKind

    kinds = [auth.kind for auth in route.auth]
    return CredentialKind.API_KEY if CredentialKind.API_KEY in kinds else kinds[0]


def _asked_model(provider: str) -> str:
    from holon.adapters.providers.catalog import builtin_catalog
    from holon.model.errors import HolonError
    from holon.model.providers.models import parse_model_ref

    prefix = f"{provider}/"
    known = [ref.removeprefix(prefix) for ref in builtin_catalog().models if ref.startswith(prefix)]
    if known:
        click.echo(f"Models: {', '.join(known)}; any other model id works too.")

    def chosen(text: str) -> str:
        try:
            return str(parse_model_ref(f"{prefix}{text.strip().removeprefix(prefix)}"))
        except HolonError as error:
            raise click.UsageError(error.message) from error

    asked: str = click.prompt("Model", default=known[0] if known else None, value_proc=chosen)
    return asked


def _write(home: Path, answers: _Answers) -> None:
    from holon.adapters.system.credential_file import CredentialFile
    from holon.config.edit_file import set_values
    from holon.config.load_settings import read_text
    from holon.config.setting_keys import find_key

    said = {"model.default": answers.model}
    if answers.base_url is not None:
        said[f"providers.{answers.provider}.base_url"] = answers.base_url
    keys = {find_key(key): text for key, text in said.items()}
    values = {key: read_text(key, text, where="you") for key, text in keys.items()}
    if answers.credential is not None:
        CredentialFile(home).put(answers.provider, answers.credential)
    set_values(home, values)
