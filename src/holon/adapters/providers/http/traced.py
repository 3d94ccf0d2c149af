"""A provider wrapper that logs each exchange.

Owns:  the two log lines: one for an exchange, one for a failure.
Rule 1: a trace holds facts (sizes, durations, ids), never a header or a body, and passes the
        redactor.
Rule 2: an exchange is one line of JSON after a fixed word, whatever a server put into its facts.
Rule 3: tracing changes nothing: answers, failures and cancellation pass through.
"""

import logging
from typing import Final

import msgspec

from holon.model.providers.attempts import (
    Disposition,
    ProviderError,
    TokenUsage,
    TransportDiagnostics,
)
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.record import Record
from holon.model.turns.turn import ModelAnswer
from holon.ports.clock import Clock
from holon.ports.journal import Redactor
from holon.ports.providers import OnProgress, Provider

LOGGER_NAME: Final = __name__
SUCCEEDED: Final = "succeeded"
ABANDONED: Final = "abandoned"  # cancelled before its end
_MS_NS: Final = 1_000_000
_NOTHING_KNOWN: Final = TransportDiagnostics()

_log = logging.getLogger(LOGGER_NAME)


class ExchangeTrace(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One exchange. `outcome` is the kind of the failure where there was one."""

    model_ref: str
    outcome: str
    status: int | None
    duration_ms: int
    bytes_sent: int | None
    bytes_received: int | None
    request_id: str | None
    token_usage: TokenUsage | None


class FailureTrace(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One failure, with everything known about its exchange."""

    model_ref: str
    failure_kind: str
    disposition: Disposition
    retry_after_ms: int | None
    duration_ms: int
    diagnostics: TransportDiagnostics | None


class Tracing(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are on, with the clock and the redactor they use."""

    clock: Clock
    redactor: Redactor
    exchanges: bool
    failures: bool


class TracedProvider:
    """Wraps a provider, and logs its exchanges."""

    def __init__(self, provider: Provider, model_ref: ModelRef, tracing: Tracing) -> None:
        self._provider = provider
        self._model_ref = str(model_ref)
        self._tracing = tracing

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the answer of the wrapped provider."""
        began_ns = self._tracing.clock.monotonic_ns()
        end: ModelAnswer | ProviderError | None = None
        try:
            end = await self._provider.answer(request, on_progress)
        except ProviderError as error:
            end = error
            raise
        finally:
            self._log_traces(end, (self._tracing.clock.monotonic_ns() - began_ns) // _MS_NS)
        return end

    def _log_traces(self, end: ModelAnswer | ProviderError | None, duration_ms: int) -> None:
        if self._tracing.exchanges:
            self._log(logging.INFO, "exchange", self._exchange_trace(end, duration_ms))
        if self._tracing.failures and isinstance(end, ProviderError):
            failure = FailureTrace(
                model_ref=self._model_ref,
                failure_kind=end.code,
                disposition=end.disposition,
                retry_after_ms=end.retry_after_ms,
                duration_ms=duration_ms,
                diagnostics=end.diagnostics,
            )
            self._log(logging.WARNING, "failure", failure)

    def _exchange_trace(
        self, end: ModelAnswer | ProviderError | None, duration_ms: int
    ) -> ExchangeTrace:
        diagnostics = (end.diagnostics if end is not None else None) or _NOTHING_KNOWN
        return ExchangeTrace(
            model_ref=self._model_ref,
            outcome=_outcome(end),
            status=diagnostics.status,
            duration_ms=duration_ms,
            bytes_sent=diagnostics.bytes_sent,
            bytes_received=diagnostics.bytes_received,
            request_id=diagnostics.request_id,
            token_usage=end.usage if end is not None else None,
        )

    def _log(self, level: int, word: str, trace: Record) -> None:
        line = msgspec.json.encode(trace).decode()
        _log.log(level, "provider %s %s", word, self._tracing.redactor.redact(line))


def _outcome(end: ModelAnswer | ProviderError | None) -> str:
    match end:
        case ModelAnswer():
            return SUCCEEDED
        case ProviderError():
            return end.code
        case None:
            return ABANDONED
