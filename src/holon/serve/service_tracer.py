"""OpenTelemetry tracing of a service, if the environment configures it.

Owns:  reading that configuration, and flushing spans at the end.
Rule 1: without OTEL_* variables nothing is imported and nothing measured.
Rule 2: tracing is optional: a missing package or an exporter that does not respond is logged and
        prevents neither start nor shutdown.
Rule 3: exporter headers are credentials: they are registered as secrets before use.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Final
from urllib.parse import unquote

import anyio

from holon.adapters.system.secrets import SecretRegistry
from holon.model.limits import JOURNAL_LAST_SPANS_MS_MAX, SECOND_MS
from holon.ports.journal import Journal, LogLevel
from holon.ports.tracer import NoTracer, Tracer

_WHERE: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def are_spans_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment configures an exporter."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return named == "otlp" or (not named and any(environ.get(name) for name in _WHERE))


@asynccontextmanager
async def service_tracer(
    environ: Mapping[str, str], journal: Journal, secrets: SecretRegistry
) -> AsyncIterator[Tracer]:
    """Trace while the block runs, if configured and available."""
    if not are_spans_wanted(environ):
        yield NoTracer()
        return
    if not all(_is_there(name) for name in _NEEDED):
        journal.note(
            "spans_unavailable",
            "spans are asked for by OTEL_*, and OpenTelemetry is not installed"
            " (pip install 'holon-runtime[otel]')",
            level=LogLevel.WARNING,
        )
        yield NoTracer()
        return
    for value in _credentials(environ):
        secrets.learn("otlp_header", value)
    from holon.adapters.telemetry import SpanTracer, otlp_exporter, tracer_provider

    provider = tracer_provider(otlp_exporter())
    journal.note("spans_on", "spans of turns are sent by OTLP")
    try:
        yield SpanTracer(provider)
    finally:
        with anyio.move_on_after(JOURNAL_LAST_SPANS_MS_MAX / SECOND_MS, shield=True):
            await anyio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)


def _is_there(name: str) -> bool:
    """Whether a module can be imported; False also if its parent is missing."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _credentials(environ: Mapping[str, str]) -> list[str]:
    pairs = [pair for name in _HEADERS for pair in environ.get(name, "").split(",")]
    values = [unquote(pair.partition("=")[2]).strip() for pair in pairs]
    # `Bearer xyz` is known as a whole and by its part behind the word.
    return [form for value in values for form in (value, value.rpartition(" ")[2]) if form]
