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
    """Return the price of a model, if known. Models that need no network are free."""
    provider = builtin_catalog().providers.get(model_ref.partition("/")[0])
    if provider is not None and provider.transport in NETWORKLESS:
        return ModelPrice(input=0.0, output=0.0)
    catalogued = builtin_catalog().models.get(model_ref)
    return None if catalogued is None else catalogued.price


def model_info(ref: ModelRef, settings: ProviderResolverSettings) -> ModelInfo:
    """Return the limits and capabilities of a model; always usable numbers."""
    setting = settings.models.get(str(ref))
    catalogued = builtin_catalog().models.get(str(ref))
    override = setting or ModelSetting()
    fallback = settings.unknown_model if catalogued is None else ModelSetting()
    bounds = catalogued or builtin_catalog().providers.get(ref.provider)
    window = _first(
        override.context_window_tokens,
        bounds.context_window_tokens if bounds else None,
        fallback.context_window_tokens,
        CONTEXT_WINDOW_TOKENS_DEFAULT,
    )
    can: frozenset[str] = catalogued.capabilities if catalogued else frozenset()
    return ModelInfo(
        model_ref=str(ref),
        source=_source(setting, catalogued),
        context_window_tokens=window,
        input_tokens_max=_input_tokens_max(override, catalogued, window),
        effective_context_window_percent=_first(
            override.effective_context_window_percent,
            fallback.effective_context_window_percent,
            WINDOW_PERCENT_DEFAULT,
        ),
        output_tokens_max=_first(
            override.output_tokens_max,
            bounds.output_tokens_max if bounds else None,
            fallback.output_tokens_max,
            OUTPUT_TOKENS_MAX_DEFAULT,
        ),
        tool_output_tokens_max=_first(
            override.tool_output_tokens_max,
            fallback.tool_output_tokens_max,
            TOOL_OUTPUT_TOKENS_MAX_DEFAULT,
        ),
        parallel_tool_calls="parallel_tool_calls" in can,
        reasoning_summaries="reasoning_summaries" in can,
        image_input="image_input" in can,
        freeform_tools="freeform_tools" in can,
        price=catalogued.price if catalogued else None,
        trial=(catalogued is not None and catalogued.trial)
        or _runs_in_process(ref.provider, settings),
    )


def _runs_in_process(provider: str, settings: ProviderResolverSettings) -> bool:
    setting, catalogued = (
        settings.providers.get(provider),
        builtin_catalog().providers.get(provider),
    )
    if setting is not None and setting.transport is not None:
        return setting.transport == TransportKind.LOCAL
    return catalogued is not None and catalogued.transport is TransportKind.LOCAL


def _first(*numbers: int | None) -> int:
    return next(number for number in numbers if number is not None)


def _source(setting: ModelSetting | None, catalogued: CatalogModel | None) -> ModelInfoSource:
    if setting is not None:
        return ModelInfoSource.CONFIG_OVERRIDE
    return ModelInfoSource.BUILTIN_CATALOG if catalogued else ModelInfoSource.UNKNOWN_FALLBACK


def _input_tokens_max(override: ModelSetting, catalogued: CatalogModel | None, window: int) -> int:
    # A window set by the operator also limits what is sent.
    if (
        override.context_window_tokens is not None
        or catalogued is None
        or catalogued.input_tokens_max is None
    ):
        return window
    return min(catalogued.input_tokens_max, window)


def request_output_tokens(
    ref: ModelRef, info: ModelInfo, settings: ProviderResolverSettings
) -> int:
    """Return the output limit: the operator's for the model, or the runtime's."""
    setting = settings.models.get(str(ref))
    if setting is not None and setting.output_tokens_max is not None:
        return setting.output_tokens_max
    return min(info.output_tokens_max, settings.output_tokens_max)


def known_providers(settings: ProviderResolverSettings) -> tuple[str, ...]:
    """Return the id of every provider that can be named, in order."""
    return tuple(sorted({*builtin_catalog().providers, *settings.providers}))


def provider_route(provider: str, settings: ProviderResolverSettings) -> ProviderRoute:
    """Return how a provider is reached, or raise a ProviderError with the reason."""
    configured = settings.providers.get(provider)
    catalogued = builtin_catalog().providers.get(provider)
    if configured is None and catalogued is None:
        raise _unknown_provider(provider, settings)
    setting = configured or ProviderSetting()
    transport = _transport(provider, setting, catalogued)
    base_url, warnings = _base_url(provider, transport, setting, catalogued)
    return ProviderRoute(
        provider=provider,
        transport=transport,
        base_url=base_url,
        auth=_auth(setting, catalogued),
        auth_is_chosen=setting.auth is not None,
        credential_optional=catalogued is None
        or catalogued.credential_optional
        or not catalogued.auth,
        is_builtin=catalogued is not None,
        stream=setting.stream
        if setting.stream is not None
        else bool(catalogued and catalogued.stream),
        takes=catalogued.takes
        if catalogued is not None and catalogued.transport is transport
        else frozenset(),
        schema_mode=setting.schema_mode or SchemaMode.RELAXED,  # which every server takes
        reasoning_effort=setting.reasoning_effort,
        incremental=bool(setting.incremental) and transport is _INCREMENTAL,
        warnings=(*warnings, *_ineffective_options(transport, setting)),
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
    provider: str, setting: ProviderSetting, catalogued: CatalogProvider | None
) -> TransportKind:
    if setting.transport is None:
        return catalogued.transport if catalogued else TransportKind.OPENAI_RESPONSES
    try:
        transport = TransportKind(setting.transport)
    except ValueError:
        supported = ", ".join(TransportKind)
        raise TransportUnsupportedError(
            f"provider {provider!r} asks for the transport {setting.transport!r}, which Holon does "
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


def _ineffective_options(transport: TransportKind, setting: ProviderSetting) -> tuple[str, ...]:
    if not setting.incremental or transport is _INCREMENTAL:
        return ()
    return (f"incremental has no effect: {transport.value} always sends the whole conversation",)


def _auth(setting: ProviderSetting, catalogued: CatalogProvider | None) -> tuple[ProviderAuth, ...]:
    if setting.auth is not None:
        return (setting.auth,)
    return catalogued.auth if catalogued else ()


def _base_url(
    provider: str,
    transport: TransportKind,
    setting: ProviderSetting,
    catalogued: CatalogProvider | None,
) -> tuple[str, tuple[str, ...]]:
    if transport in NETWORKLESS:
        return "", ()
    url = (setting.base_url or (catalogued.base_url if catalogued else "")).strip().rstrip("/")
    command = f"`holon config providers set {provider} --base-url https://…`"
    if not url:
        raise ModelUnavailableError(f"provider {provider!r} has no base URL", hint=f"run {command}")
    problem = _url_problem(url)
    if problem is not None:
        raise ModelUnavailableError(
            f"the base URL of provider {provider!r} {problem}",
            hint=f"correct it with {command}, or in HOLON_{_variable(provider)}_BASE_URL",
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
