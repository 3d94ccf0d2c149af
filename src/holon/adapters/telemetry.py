"""OpenTelemetry spans: one per turn, with a child span per model round and per tool call.

Owns:  the mapping of runtime facts to spans and attributes, and the exporter the environment names.
       Imported only when tracing is on: the packages are optional and slow to load.
Rule 1: attributes are ids, names, counts and outcomes; never the text of a prompt, an answer, a
        call's input or a result.
Rule 2: everything else is left to the SDK, which reads OTEL_* itself: endpoint, batching, sampling,
        service name.
Rule 3: spans of open turns are held here only; leaving the turn ends them.
"""

import os
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace import Tracer as OtelTracer

from holon import __version__
from holon.model.commits import FinishToolCall
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.tools import ToolCallRecord, ToolCallState
from holon.model.turns.turn import Finish, ModelAnswered, ModelFailed, RoundTiming
from holon.model.values import AgentId, TurnId, later, to_micros

SERVICE: Final = "holon"
CUT_OFF: Final = "cut_off"
_Value = str | int


class SpanTracer:
    """Makes spans of what the runtime tells."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer(SERVICE, __version__)
        self._open: dict[TurnId, _OpenTurn] = {}

    def turn(self, agent_id: AgentId, turn_id: TurnId) -> "_OpenTurn":
        """Return the span of a turn that begins."""
        return _OpenTurn(self._tracer, self._open, agent_id, turn_id)

    def round_ended(
        self, turn_id: TurnId, answer: ModelAnswered | ModelFailed, timing: RoundTiming
    ) -> None:
        """A model was asked, and answered or not."""
        attributes = _round_attributes(answer) | {"holon.context_build_ms": timing.context_build_ms}
        failed = answer.failure.kind if isinstance(answer, ModelFailed) else None
        self._past(
            "round", turn_id, attributes, (timing.started_at, timing.completed_at), failed=failed
        )

    def tool_ended(self, call: ToolCallRecord, finished: FinishToolCall) -> None:
        """A call has its result."""
        refused = finished.state is not ToolCallState.SUCCEEDED
        kind = finished.receipt.error_kind or finished.state.value
        attributes: dict[str, _Value] = {
            "gen_ai.tool.name": call.name,
            "holon.effect.id": call.effect_id,
            "holon.outcome": kind if refused else finished.state.value,
        }
        ended_at = later(call.started_at, by_ms=finished.duration_ms or 0)
        failed = kind if refused else None
        self._past("tool", call.turn_id, attributes, (call.started_at, ended_at), failed=failed)

    def _past(
        self,
        name: str,
        turn_id: TurnId,
        attributes: Mapping[str, _Value],
        times: tuple[datetime, datetime],
        *,
        failed: str | None,
    ) -> None:
        """Make the span of something that is over."""
        turn = self._open.get(turn_id)
        if turn is None:
            return
        span = self._tracer.start_span(
            f"holon.{name}",
            context=turn.context,
            kind=SpanKind.CLIENT if name == "round" else SpanKind.INTERNAL,
            attributes={**turn.ids, **attributes},
            start_time=to_micros(times[0]) * 1_000,
        )
        if failed is not None:
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(to_micros(times[1]) * 1_000)


class _OpenTurn:
    """The span of a turn."""

    def __init__(
        self,
        tracer: OtelTracer,
        among: "dict[TurnId, _OpenTurn]",
        agent_id: AgentId,
        turn_id: TurnId,
    ) -> None:
        self._tracer = tracer
        self._among = among
        self._turn_id = turn_id
        self.ids: Mapping[str, _Value] = {"holon.agent.id": agent_id, "holon.turn.id": turn_id}
        self.context = Context()
        self._outcome: str | None = None

    def ended(self, finish: Finish, usage: TokenUsage, round_count: int) -> None:
        """Say how it ended."""
        failed = finish.failure.kind if finish.failure is not None else None
        self._outcome = failed or "completed"
        self._span.set_attributes({**_usage_attributes(usage), "holon.round.count": round_count})
        if failed is not None:
            self._span.set_status(Status(StatusCode.ERROR, failed))

    def __enter__(self) -> "_OpenTurn":
        self._span: Span = self._tracer.start_span(
            "holon.turn", context=Context(), attributes=self.ids
        )
        self.context = set_span_in_context(self._span, Context())
        self._among[self._turn_id] = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._among.pop(self._turn_id, None)
        self._span.set_attribute("holon.outcome", self._outcome or CUT_OFF)
        self._span.end()


def tracer_provider(exporter: SpanExporter) -> TracerProvider:
    """Return a provider that exports spans in the background. Shut it down at the end."""
    named = "OTEL_SERVICE_NAME" in os.environ or f"{SERVICE_NAME}=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    about = {SERVICE_VERSION: __version__} | ({} if named else {SERVICE_NAME: SERVICE})
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def otlp_exporter() -> SpanExporter:
    """Return the exporter that speaks OTLP over HTTP, set up by OTEL_EXPORTER_OTLP_*."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _round_attributes(answer: ModelAnswered | ModelFailed) -> dict[str, _Value]:
    timeline = answer.timeline
    attributes: dict[str, _Value] = {}
    if timeline is not None:
        attributes["gen_ai.request.model"] = timeline.requested_model_ref
        attributes["holon.attempt.count"] = len(timeline.attempts)
        if timeline.winning_model_ref is not None:
            attributes["gen_ai.response.model"] = timeline.winning_model_ref
    if isinstance(answer, ModelFailed):
        return attributes | {"holon.outcome": answer.failure.kind}
    return (
        attributes | _usage_attributes(answer.usage) | {"holon.outcome": answer.stop_reason.value}
    )


def _usage_attributes(usage: TokenUsage) -> dict[str, _Value]:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "holon.usage.cache_read_tokens": usage.cache_read_tokens,
        "holon.usage.cache_creation_tokens": usage.cache_creation_tokens,
    }
