"""The provider report of `holon config providers doctor`.

Owns:  the report: per provider its transport, endpoint, credential source, availability, retry
       policy and last failure.
Rule 1: a report names credentials and never contains one.
Rule 2: the report is made from configuration; only a probe uses the network. A probe is one request
        to the base address without a credential; any response counts as reachable.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from holon.adapters.providers.catalog import NETWORKLESS, ProviderRoute, known_providers
from holon.adapters.providers.credentials import CredentialState
from holon.adapters.providers.http.exchange import HttpCall
from holon.adapters.providers.resolver import ProviderResolver
from holon.model.limits import (
    PROVIDER_BACKOFF_MS_MAX,
    PROVIDER_BACKOFF_MS_MIN,
    PROVIDER_RETRIES_COUNT_MAX,
    SECOND_MS,
)
from holon.model.providers import attempts as errors
from holon.model.providers.models import ModelRef
from holon.model.record import Record
from holon.runtime.providers.gate import LastFailure

PROBE_MS_MAX: Final = 10 * SECOND_MS

RETRYABLE: Final[tuple[type[errors.ProviderError], ...]] = (
    errors.ProviderTimeoutError,
    errors.ProviderUnreachableError,
    errors.RateLimitedError,
    errors.ProviderOverloadedError,
    errors.GarbledAnswerError,
)
FAIL_FAST: Final[tuple[type[errors.ProviderError], ...]] = (
    errors.AuthRejectedError,
    errors.RequestRejectedError,
    errors.ContextTooLongError,
    errors.UnreadableResponseError,
    errors.TransportUnsupportedError,
    errors.UsageLimitedError,
    errors.ModelUnavailableError,
    errors.CircuitOpenError,
)


class RetryPolicyReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How often a failed request is repeated, and after which failures."""

    max_retries: int = PROVIDER_RETRIES_COUNT_MAX
    backoff: str = "exponential with jitter; a named wait is honoured"
    backoff_ms_min: int = PROVIDER_BACKOFF_MS_MIN
    backoff_ms_max: int = PROVIDER_BACKOFF_MS_MAX
    retryable: tuple[str, ...] = tuple(error.code for error in RETRYABLE)
    fail_fast: tuple[str, ...] = tuple(error.code for error in FAIL_FAST)


class Availability(StrEnum):
    """Whether a provider can be asked as it is configured."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"


class ProbeReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one request to the base address showed."""

    is_reachable: bool
    status: int | None = None
    detail: str | None = None


class ProviderReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One provider."""

    provider: str
    is_configured: bool = True  # false: listed only because of a recorded failure
    transport: str | None = None
    endpoint: str | None = None
    credential: CredentialState | None = None
    availability: Availability
    reason: str | None = None
    hint: str | None = None
    warnings: tuple[str, ...] = ()
    models: tuple[str, ...] = ()  # the configured models of this provider
    retry_policy: RetryPolicyReport = RetryPolicyReport()
    last_failure: LastFailure | None = None
    probe: ProbeReport | None = None


class DoctorReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything the doctor says."""

    is_usable: bool  # the default model can be asked
    default_model: str
    default_is_chosen: bool  # the operator named it
    fallback_models: tuple[str, ...]
    problem: str | None = None  # why the default model cannot be asked
    hint: str | None = None
    note: str | None = None
    config_faults: tuple[str, ...] = ()  # settings that do not fit; a host would not start
    warnings: tuple[str, ...] = ()  # what was probably not meant; a host starts all the same
    providers: tuple[ProviderReport, ...]


def examine(
    resolver: ProviderResolver,
    failures: Mapping[str, LastFailure],
    probes: Mapping[str, ProbeReport],
    *,
    only: str | None = None,
) -> DoctorReport:
    """Report on each provider that is configured or has failed, or on the one that is named."""
    configured = set(configured_providers(resolver))
    selected = [only] if only is not None else sorted(configured | set(failures))
    default = resolver.preference.default
    refusal = _refusal(resolver, default)
    probe = probes.get(default.provider)
    unreached = None if probe is None or probe.is_reachable else probe.detail
    return DoctorReport(
        is_usable=refusal is None and unreached is None,
        default_model=str(default),
        default_is_chosen=resolver.settings.model_default is not None,
        fallback_models=tuple(str(ref) for ref in resolver.preference.fallbacks),
        problem=refusal.message if refusal is not None else unreached,
        hint=refusal.hint if refusal is not None else None,
        note=resolver.note,
        providers=tuple(
            msgspec.structs.replace(
                _provider(resolver, provider, failures.get(provider), probes.get(provider)),
                is_configured=provider in configured,
            )
            for provider in selected
        ),
    )


def configured_providers(resolver: ProviderResolver) -> Iterator[str]:
    """Yield each provider that is in the settings, named by a model, or has a credential."""
    named = {ref.provider for ref in _models_named(resolver)} | set(resolver.settings.providers)
    for provider in sorted({*known_providers(resolver.settings), *named}):
        if provider in named or _has_credential(resolver, provider):
            yield provider


def _has_credential(resolver: ProviderResolver, provider: str) -> bool:
    route = resolver.route(provider)
    return route.transport not in NETWORKLESS and resolver.credentials.chosen(route).is_present


def _provider(
    resolver: ProviderResolver,
    provider: str,
    last_failure: LastFailure | None,
    probe: ProbeReport | None,
) -> ProviderReport:
    models = tuple(ref for ref in _models_named(resolver) if ref.provider == provider)
    try:
        route = resolver.route(provider)
    except errors.ProviderError as error:
        setting = resolver.settings.providers.get(provider)
        return ProviderReport(
            provider=provider,
            transport=setting.transport if setting else None,
            availability=Availability.UNAVAILABLE,
            reason=error.message,
            hint=error.hint,
            models=tuple(str(ref) for ref in models),
            last_failure=last_failure,
        )
    refusal = _first_refusal(resolver, route, models)
    unreached = probe.detail if probe is not None and not probe.is_reachable else None
    reason = refusal.message if refusal is not None else unreached
    is_networkless = route.transport in NETWORKLESS
    return ProviderReport(
        provider=provider,
        transport=route.transport.value,
        endpoint=route.base_url or None,
        credential=None if is_networkless else resolver.credentials.chosen(route),
        availability=Availability.AVAILABLE if reason is None else Availability.UNAVAILABLE,
        reason=reason,
        hint=refusal.hint if refusal is not None else None,
        warnings=route.warnings,
        models=tuple(str(ref) for ref in models),
        last_failure=last_failure,
        probe=probe,
    )


def _models_named(resolver: ProviderResolver) -> tuple[ModelRef, ...]:
    return (resolver.preference.default, *resolver.settings.model_fallbacks)


def _refusal(resolver: ProviderResolver, ref: ModelRef) -> errors.ProviderError | None:
    try:
        resolver.find(ref)
    except errors.ProviderError as error:
        return error
    return None


def _first_refusal(
    resolver: ProviderResolver, route: ProviderRoute, models: tuple[ModelRef, ...]
) -> errors.ProviderError | None:
    for ref in models:
        refusal = _refusal(resolver, ref)
        if refusal is not None:
            return refusal
    if models or route.transport in NETWORKLESS:
        return None
    try:
        resolver.credentials.bind(route)
    except errors.ProviderError as error:
        return error
    return None


async def probe_provider(resolver: ProviderResolver, provider: str) -> ProbeReport | None:
    """Send one request to a provider's base address; nothing for one that has none."""
    import anyio

    try:
        route = resolver.route(provider)
    except errors.ProviderError:
        return None
    if route.transport in NETWORKLESS:
        return None
    call = HttpCall(
        provider=provider,
        model_ref=f"{provider}/probe",
        url=route.base_url,
        headers={"accept": "application/json"},
        body=b"{}",
    )
    try:
        with anyio.fail_after(PROBE_MS_MAX / 1_000):
            async with resolver.exchange().open(call) as reply:
                return ProbeReport(is_reachable=True, status=reply.diagnostics().status)
    except TimeoutError:
        return ProbeReport(is_reachable=False, detail=f"no answer within {PROBE_MS_MAX} ms")
    except errors.ProviderError as error:
        status = error.diagnostics.status if error.diagnostics is not None else None
        # Any status proves that a server answered.
        return ProbeReport(
            is_reachable=status is not None,
            status=status,
            detail=None if status is not None else error.message,
        )
