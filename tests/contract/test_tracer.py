"""What every tracer promises, asked of each implementation."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider

from holon.adapters.telemetry import SpanTracer
from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.turn import Finish, ModelFailed, RoundTiming
from holon.model.values import TurnId
from holon.ports.tracer import NoTracer, Tracer
from tests.support.builders import MAIN
from tests.support.manual_clock import DAWN

FAILED = FailureArtifact(category=FailureCategory.UNKNOWN, kind="broke", summary="it broke")
TIMING = RoundTiming(
    context_build_ms=1,
    provider_round_ms=2,
    started_at=DAWN,
    completed_at=DAWN - timedelta(hours=1),  # the wall clock was set
)


@pytest.mark.parametrize("make", [NoTracer, lambda: SpanTracer(TracerProvider())])
def test_nothing_about_a_turn_makes_a_tracer_raise(make: Callable[[], Tracer]) -> None:
    tracer, turn_id = make(), TurnId("turn_1")
    tracer.round_ended(turn_id, ModelFailed(failure=FAILED), TIMING)  # of a turn that is not open
    with tracer.turn(MAIN, turn_id) as span:
        tracer.round_ended(turn_id, ModelFailed(failure=FAILED), TIMING)
        span.ended(Finish(failure=FAILED), TokenUsage(), 0)
    with pytest.raises(ZeroDivisionError), tracer.turn(MAIN, turn_id):
        raise ZeroDivisionError
