"""Spans of real turns, gathered in memory: who, how long, how much; never what was said."""

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from holon.adapters.telemetry import SpanTracer, tracer_provider
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.support.scripted_provider import ScriptedRound


def spans_of(prompt: str, *rounds: ScriptedRound) -> list[ReadableSpan]:
    """The spans of everything one prompt leads to, in the order they ended."""
    gathered = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({}))
    provider.add_span_processor(SimpleSpanProcessor(gathered))
    script = [rule(prompt, *rounds)]

    async def story(house: House) -> None:
        await house.prompt(prompt)
        await house.rest(600_000)

    run_house(story, script=script, setup=Setup(tracer=SpanTracer(provider)))
    return list(gathered.get_finished_spans())


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


@pytest.mark.requirement("journal:spans-of-turn-round-and-tool")
def test_a_turn_has_a_span_and_so_have_its_rounds_and_calls() -> None:
    spans = spans_of(
        "please", calls("Enqueue", text="CANARY-INPUT", after_ms=2_000), says("CANARY-ANSWER")
    )
    first = spans[:4]
    assert [s.name for s in first] == ["holon.round", "holon.tool", "holon.round", "holon.turn"]
    asked, called, _, turn = first
    assert turn.context is not None
    assert {s.parent and s.parent.span_id for s in first[:3]} == {turn.context.span_id}
    assert turn.parent is None
    ids = {k: v for k, v in attributes(turn).items() if k in ("holon.agent.id", "holon.turn.id")}
    assert all(ids.items() <= attributes(s).items() for s in first)
    assert attributes(turn)["holon.outcome"] == "completed"
    assert attributes(turn)["holon.round.count"] == 2
    assert attributes(called)["gen_ai.tool.name"] == "Enqueue"
    assert attributes(called)["holon.outcome"] == "succeeded"
    assert attributes(asked)["gen_ai.request.model"]
    assert {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"} <= attributes(asked).keys()
    assert asked.start_time is not None
    assert asked.end_time is not None
    assert asked.end_time - asked.start_time == 2_000_000_000


@pytest.mark.requirement("journal:spans-hold-no-text")
def test_no_span_holds_a_word_that_was_said() -> None:
    spans = spans_of("CANARY-PROMPT", calls("Enqueue", text="CANARY-INPUT"), says("CANARY-ANSWER"))
    told = "".join(span.to_json() for span in spans)
    assert len(spans) >= 4
    assert "CANARY" not in told


def test_a_call_that_is_refused_and_a_round_that_fails_are_errors() -> None:
    spans = spans_of("go", calls("Enqueue", nonsense=1), ScriptedRound(fail="auth_rejected"))
    by_name = {span.name: span for span in spans}
    assert by_name["holon.tool"].status.status_code is StatusCode.ERROR
    assert by_name["holon.round"].status.status_code is StatusCode.ERROR
    assert by_name["holon.turn"].status.status_code is StatusCode.ERROR
    assert attributes(by_name["holon.turn"])["holon.outcome"] == "auth_rejected"


def test_a_turn_that_is_cut_off_ends_its_span() -> None:
    gathered = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(gathered))

    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(1_000)
        await house.restart()
        await house.rest(600_000)

    script = [rule("slow", says("done", after_ms=60_000))]
    run_house(story, script=script, setup=Setup(tracer=SpanTracer(provider)))
    outcomes = [
        attributes(s)["holon.outcome"]
        for s in gathered.get_finished_spans()
        if s.name == "holon.turn"
    ]
    assert outcomes[-1] == "completed"
    assert set(outcomes[:-1]) <= {"cut_off"}


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "holon"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=theirs,a=b"}, "theirs"),
    ],
)
def test_the_service_is_called_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], name: str
) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    provider = tracer_provider(InMemorySpanExporter())
    try:
        assert provider.resource.attributes["service.name"] == name
    finally:
        provider.shutdown()
