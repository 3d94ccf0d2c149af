"""The catalog of known providers and models, merged with the operator's settings.

Owns:  reading catalog.json and merging it with what the settings say about a provider or a model.
Rule 1: settings win over the catalog; a model neither describes gets usable defaults.
Rule 2: an invalid provider is refused with a message and never guessed: an unknown id, an unknown
        transport, a base URL that is missing or malformed.
Rule 3: the catalog holds facts only: a number or price that is not public, not certain, or varies
        with the hour is left out. Prices are US dollars per million tokens at the smallest tier;
        `input_tokens_max` is set where the provider accepts less than the window.
Rule 4: the catalog is read at every start, so it is JSON: parsing it as TOML took forty times as
        long.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from holon.model.budgets import ModelPrice
from holon.model.providers.attempts import ModelUnavailableError, TransportUnsupportedError
from holon.model.providers.models import (
    ModelRef,
    ModelSetting,
    ProviderAuth,
    ProviderResolverSettings,
    ProviderSetting,
    SchemaMode,
    TransportKind,
)
from holon.model.record import Record

CONTEXT_WINDOW_TOKENS_DEFAULT: Final = 128_000
WINDOW_PERCENT_DEFAULT: Final = 95
OUTPUT_TOKENS_MAX_DEFAULT: Final = 8_192
TOOL_OUTPUT_TOKENS_MAX_DEFAULT: Final = 2_500
COMPACTION_TRIGGER_PERCENT: Final = 90  # of the prompt budget
COMPACTION_KEEP_RECENT_PERCENT: Final = 38  # of the trigger

MODEL_DEFAULT: Final = ModelRef(provider="openai", model="gpt-5.4")
MODEL_LOCAL: Final = ModelRef(provider="local", model="smollm2-135m")

_INCREMENTAL: Final = TransportKind.OPENAI_RESPONSES  # the one wire that can go on from an answer
_CODEX: Final = "openai-codex"  # its backend takes no other request than that of its own wire
NETWORKLESS: Final = frozenset({TransportKind.SCRIPTED, TransportKind.LOCAL})


class ModelInfoSource(StrEnum):
    """Who said what is known about a model."""

    BUILTIN_CATALOG = "builtin_catalog"
    CONFIG_OVERRIDE = "config_override"
    UNKNOWN_FALLBACK = "unknown_fallback"


class CatalogProvider(Record, frozen=True, kw_only=True):
    """A provider as the catalog describes it. `auth` lists credentials in order of preference."""

    name: str
    transport: TransportKind
    base_url: str = ""
    auth: tuple[ProviderAuth, ...] = ()
    credential_optional: bool = False
    stream: bool = False
    takes: frozenset[str] = frozenset()  # parameters that not every server of its wire takes
    # Of models that are not in the catalog, where the provider itself sets the bounds.
    context_window_tokens: int | None = None
    output_tokens_max: int | None = None


class CatalogModel(Record, frozen=True, kw_only=True):
    """A model as the catalog describes it."""

    context_window_tokens: int
    input_tokens_max: int | None = None
    output_tokens_max: int | None = None
    price: ModelPrice | None = None
    capabilities: frozenset[str] = frozenset()
    trial: bool = False  # for trying Holon: too weak to be given tools that act on the machine


class Catalog(Record, frozen=True, kw_only=True):
    """Everything in catalog.json."""

    providers: Mapping[str, CatalogProvider]
    models: Mapping[str, CatalogModel]


class ModelInfo(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What can be asked of one model, and how much of it."""

    model_ref: str
    source: ModelInfoSource
    context_window_tokens: int
    input_tokens_max: int
    effective_context_window_percent: int
    output_tokens_max: int
    tool_output_tokens_max: int
    parallel_tool_calls: bool
    reasoning_summaries: bool
    image_input: bool
    freeform_tools: bool
    price: ModelPrice | None
    trial: bool

    @property
    def prompt_budget_tokens(self) -> int:
        """How much may be sent; what the model answers is not subtracted."""
        return self.input_tokens_max * self.effective_context_window_percent // 100

    @property
    def compaction_trigger_tokens(self) -> int:
        """From which size on a conversation is compacted."""
        return self.prompt_budget_tokens * COMPACTION_TRIGGER_PERCENT // 100

    @property
    def compaction_keep_recent_tokens(self) -> int:
        """How much of the end of a conversation compaction leaves as it is."""
        return self.compaction_trigger_tokens * COMPACTION_KEEP_RECENT_PERCENT // 100


class ProviderRoute(Record, frozen=True, kw_only=True):
    """A provider as it will be reached: the catalog and the operator's words in one."""

    provider: str
    transport: TransportKind
    base_url: str
    auth: tuple[ProviderAuth, ...]  # in order of preference
    auth_is_chosen: bool = False  # the operator named the one credential to use
    credential_optional: bool = False
    is_builtin: bool = True
    stream: bool = False
    takes: frozenset[str] = frozenset()
    schema_mode: SchemaMode = SchemaMode.RELAXED
    reasoning_effort: str | None = None
    incremental: bool = False
    warnings: tuple[str, ...] = ()


@cache
def builtin_catalog() -> Catalog:
    """Return the catalog that ships with Holon."""
    written = Path(__file__).with_name("catalog.json").read_bytes()
    return msgspec.json.decode(written, type=Catalog)


def price_of(model_ref: str) -> ModelPrice | None:
    """Return what a model costs, where that is known. One that needs no network costs nothing."""
    provider = builtin_catalog().providers.get(model_ref.partition("/")[0])
    if provider is not None and provider.transport in NETWORKLESS:
        return ModelPrice(input=0.0, output=0.0)
    known = builtin_catalog().models.get(model_ref)
    return None if known is None else known.price


def model_info(ref: ModelRef, settings: ProviderResolverSettings) -> ModelInfo:
    """Return what is known about a model, always usable."""
    told = settings.models.get(str(ref))
    known = builtin_catalog().models.get(str(ref))
    said = told or ModelSetting()
    unsaid = settings.unknown_model if known is None else ModelSetting()
    bounds = known or builtin_catalog().providers.get(ref.provider)
    window = _first(
        said.context_window_tokens,
        bounds.context_window_tokens if bounds else None,
        unsaid.context_window_tokens,
        CONTEXT_WINDOW_TOKENS_DEFAULT,
    )
    can: frozenset[str] = known.capabilities if known else frozenset()
    return ModelInfo(
        model_ref=str(ref),
        source=_source(told, known),
        context_window_tokens=window,
        input_tokens_max=_input_tokens_max(said, known, window),
        effective_context_window_percent=_first(
            said.effective_context_window_percent,
            unsaid.effective_context_window_percent,
            WINDOW_PERCENT_DEFAULT,
        ),
        output_tokens_max=_first(
            said.output_tokens_max,
            bounds.output_tokens_max if bounds else None,
            unsaid.output_tokens_max,
            OUTPUT_TOKENS_MAX_DEFAULT,
        ),
        tool_output_tokens_max=_first(
            said.tool_output_tokens_max,
            unsaid.tool_output_tokens_max,
            TOOL_OUTPUT_TOKENS_MAX_DEFAULT,
        ),
        parallel_tool_calls="parallel_tool_calls" in can,
        reasoning_summaries="reasoning_summaries" in can,
        image_input="image_input" in can,
        freeform_tools="freeform_tools" in can,
        price=known.price if known else None,
        trial=(known is not None and known.trial) or _runs_in_process(ref.provider, settings),
    )


def _runs_in_process(provider: str, settings: ProviderResolverSettings) -> bool:
    told, known = settings.providers.get(provider), builtin_catalog().providers.get(provider)
    if told is not None and told.transport is not None:
        return told.transport == TransportKind.LOCAL
    return known is not None and known.transport is TransportKind.LOCAL


def _first(*numbers: int | None) -> int:
    return next(number for number in numbers if number is not None)


def _source(told: ModelSetting | None, known: CatalogModel | None) -> ModelInfoSource:
    if told is not None:
        return ModelInfoSource.CONFIG_OVERRIDE
    return ModelInfoSource.BUILTIN_CATALOG if known else ModelInfoSource.UNKNOWN_FALLBACK


def _input_tokens_max(said: ModelSetting, known: CatalogModel | None, window: int) -> int:
    # An operator who states the window means what may be sent.
    if said.context_window_tokens is not None or known is None or known.input_tokens_max is None:
        return window
    return min(known.input_tokens_max, window)


def request_output_tokens(
    ref: ModelRef, info: ModelInfo, settings: ProviderResolverSettings
) -> int:
    """Return how long an answer may be: the operator's word for the model, or the runtime's."""
    told = settings.models.get(str(ref))
    if told is not None and told.output_tokens_max is not None:
        return told.output_tokens_max
    return min(info.output_tokens_max, settings.output_tokens_max)


def known_providers(settings: ProviderResolverSettings) -> tuple[str, ...]:
    """Return the id of every provider that can be named, in order."""
    return tuple(sorted({*builtin_catalog().providers, *settings.providers}))


def provider_route(provider: str, settings: ProviderResolverSettings) -> ProviderRoute:
    """Return how a provider is reached, or raise the ProviderError that says why it is not."""
    told = settings.providers.get(provider)
    known = builtin_catalog().providers.get(provider)
    if told is None and known is None:
        raise _unknown_provider(provider, settings)
    said = told or ProviderSetting()
    transport = _transport(provider, said, known)
    base_url, warnings = _base_url(provider, transport, said, known)
    return ProviderRoute(
        provider=provider,
        transport=transport,
        base_url=base_url,
        auth=_auth(said, known),
        auth_is_chosen=said.auth is not None,
        credential_optional=known is None or known.credential_optional or not known.auth,
        is_builtin=known is not None,
        stream=said.stream if said.stream is not None else bool(known and known.stream),
        takes=known.takes if known is not None and known.transport is transport else frozenset(),
        schema_mode=said.schema_mode or SchemaMode.RELAXED,  # which every server takes
        reasoning_effort=said.reasoning_effort,
        incremental=bool(said.incremental) and transport is _INCREMENTAL,
        warnings=(*warnings, *_unfit_options(transport, said)),
    )


def _unknown_provider(provider: str, settings: ProviderResolverSettings) -> ModelUnavailableError:
    from difflib import get_close_matches  # only here, and a run that goes well never comes here

    near = get_close_matches(provider, known_providers(settings), n=1, cutoff=0.7)
    meant = f"did you mean {near[0]!r}? Otherwise describe" if near else "describe"
    return ModelUnavailableError(
        f"there is no provider {provider!r}",
        hint=f"{meant} it with `holon config providers set {provider} --transport … --base-url …`",
    )


def _transport(
    provider: str, said: ProviderSetting, known: CatalogProvider | None
) -> TransportKind:
    if said.transport is None:
        return known.transport if known else TransportKind.OPENAI_RESPONSES
    try:
        transport = TransportKind(said.transport)
    except ValueError:
        supported = ", ".join(TransportKind)
        raise TransportUnsupportedError(
            f"provider {provider!r} asks for the transport {said.transport!r}, which Holon does "
            "not speak",
            hint=f"set one of {supported} (`holon config providers set {provider} --transport …`)",
        ) from None
    if provider == _CODEX and transport is not TransportKind.OPENAI_CODEX_RESPONSES:
        raise TransportUnsupportedError(
            f"provider {_CODEX!r} needs the streaming transport"
            f" {TransportKind.OPENAI_CODEX_RESPONSES.value!r} and cannot be asked over"
            f" {transport.value!r}",
            hint=f"run `holon config unset providers.{_CODEX}.transport`, or name the other"
            " endpoint as a provider of its own",
        )
    return transport


def _unfit_options(transport: TransportKind, said: ProviderSetting) -> tuple[str, ...]:
    if not said.incremental or transport is _INCREMENTAL:
        return ()
    return (f"incremental has no effect: {transport.value} always sends the whole conversation",)


def _auth(said: ProviderSetting, known: CatalogProvider | None) -> tuple[ProviderAuth, ...]:
    if said.auth is not None:
        return (said.auth,)
    return known.auth if known else ()


def _base_url(
    provider: str, transport: TransportKind, said: ProviderSetting, known: CatalogProvider | None
) -> tuple[str, tuple[str, ...]]:
    if transport in NETWORKLESS:
        return "", ()
    url = (said.base_url or (known.base_url if known else "")).strip().rstrip("/")
    how = f"`holon config providers set {provider} --base-url https://…`"
    if not url:
        raise ModelUnavailableError(f"provider {provider!r} has no base URL", hint=f"run {how}")
    problem = _url_problem(url)
    if problem is not None:
        raise ModelUnavailableError(
            f"the base URL of provider {provider!r} {problem}",
            hint=f"correct it with {how}, or in HOLON_{_variable(provider)}_BASE_URL",
        )
    return url, _url_warnings(urlsplit(url))


def _variable(provider: str) -> str:
    return provider.upper().replace("-", "_").replace(".", "_")


def _url_problem(url: str) -> str | None:
    """Say what is wrong with an address without repeating it: it may hold a password."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https"):
        return "must start with http:// or https://"
    if not host or not url.isprintable() or " " in url:
        return "is not an address"
    if parts.username is not None or parts.password is not None:
        return "holds a user name or password, which would be shown in diagnostics"
    if parts.query or parts.fragment:
        return "may not have a query or fragment"
    return None


def _url_warnings(parts: SplitResult) -> tuple[str, ...]:
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return ()
    return (f"plain http to {parts.hostname}: the credential and the conversation are readable",)


def is_loopback(host: str) -> bool:
    """Return whether a host name means this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
