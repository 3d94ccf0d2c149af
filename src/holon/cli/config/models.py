"""`holon config models`: shows what is known about models.

Owns:  the output of the model commands.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.config.provider_access import ProviderAccess, open_provider_access
from holon.cli.console.completion import complete_provider
from holon.cli.console.options import echo_json, home_option, json_option
from holon.model.values import JsonValue

if TYPE_CHECKING:
    from holon.adapters.providers.catalog import ModelInfo


@click.group()
def models() -> None:
    """Show the known models.

    \b
    Examples:
      holon config models list
      holon config models list --provider anthropic
    """


@models.command("list")
@click.option(
    "--provider",
    metavar="ID",
    shell_complete=complete_provider,
    help="Only the models of one provider.",
)
@json_option
@home_option
def list_models(provider: str | None, as_json: bool, home: Path) -> None:
    """List the models of the catalog and of the settings.

    Any other model of a provider can be used as provider/model; it gets default limits (source
    unknown_fallback). Prices are US dollars per million tokens, if known.

    \b
    With --json:
      {"models": [{"model_ref": "openai/gpt-5.4", "source": "builtin_catalog",
                   "context_window_tokens": 1050000, "prompt_budget_tokens": 875900, …,
                   "price": {"input": 2.5, "output": 15.0}, "is_default": true}]}

    \b
    Examples:
      holon config models list
      holon config models list --provider anthropic --json
    """
    opened = open_provider_access(home)
    found = list(_found(opened, provider))
    if as_json:
        default = str(opened.plane.preference.default)
        echo_json({"models": [_row(one, is_default=one.model_ref == default) for one in found]})
        return
    for line in _lines(found):
        click.echo(line)


def _found(opened: ProviderAccess, provider: str | None) -> "Iterator[ModelInfo]":
    from holon.adapters.providers.catalog import builtin_catalog
    from holon.model.providers.models import parse_model_ref

    settings = opened.settings.plane
    preferred = (opened.plane.preference.default, *settings.model_fallbacks)
    if provider is not None:
        opened.plane.route(provider)  # says so when there is no such provider
    named = {*builtin_catalog().models, *settings.models, *(str(ref) for ref in preferred)}
    for text in sorted(named):
        ref = parse_model_ref(text)
        if provider is None or ref.provider == provider:
            yield opened.plane.describe(ref)


def _row(info: "ModelInfo", *, is_default: bool) -> JsonValue:
    from holon.wire.codec import json_of

    told = json_of(info)
    assert isinstance(told, dict)
    return {
        **told,
        "prompt_budget_tokens": info.prompt_budget_tokens,
        "compaction_trigger_tokens": info.compaction_trigger_tokens,
        "compaction_keep_recent_tokens": info.compaction_keep_recent_tokens,
        "is_default": is_default,
    }


def _lines(found: "list[ModelInfo]") -> Iterator[str]:
    if not found:
        yield "no model of this provider is in the catalog; any can be used as provider/model"
        return
    width = max(len(info.model_ref) for info in found)
    yield f"{'model':<{width}}  {'window':>9}  {'output':>7}  {'in / out, $':>15}  source"
    for info in found:
        price = info.price
        cost = "" if price is None else f"{price.input:g} / {price.output:g}"
        yield (
            f"{info.model_ref:<{width}}  {info.context_window_tokens:>9}  "
            f"{info.output_tokens_max:>7}  {cost:>15}  {info.source.value}"
        )
