"""Spans are sent when the environment says where to, and cost nothing otherwise."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holon.adapters.system.secrets import SecretRegistry
from holon.adapters.telemetry import SpanTracer
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.turn import Finish
from holon.model.values import TurnId
from holon.ports.tracer import NoTracer
from holon.serve.service_tracer import are_spans_wanted, service_tracer
from tests.runtime.notes import Notes
from tests.support.builders import MAIN

SENT_TO = "OTEL_EXPORTER_OTLP_ENDPOINT"
CANARY = "canary-0123456789-abcdef"


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({SENT_TO: "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", SENT_TO: "http://127.0.0.1:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", SENT_TO: "http://127.0.0.1:4318"}, False),
    ],
)
def test_spans_are_wanted_when_somebody_said_where_to_send_them(
    environ: dict[str, str], wanted: bool
) -> None:
    assert are_spans_wanted(environ) is wanted


@pytest.mark.requirement("journal:spans-cost-nothing-unless-asked-for")
def test_a_service_that_is_not_asked_for_spans_imports_nothing_for_them() -> None:
    script = """
import sys, anyio, holon.serve.foreground
from holon.adapters.system.secrets import SecretRegistry
from holon.ports.journal import NoJournal
from holon.serve.service_tracer import service_tracer

async def serve():
    async with service_tracer({"OTEL_SERVICE_NAME": "x"}, NoJournal(), SecretRegistry()) as tracer:
        with tracer.turn("main", "turn_1"):
            pass

anyio.run(serve)
sys.exit(any(name.startswith("opentelemetry") for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0


async def test_unasked_nobody_measures() -> None:
    notes = Notes()
    async with service_tracer({}, notes, SecretRegistry()) as tracer:
        assert isinstance(tracer, NoTracer)
    assert notes.lines == []


async def test_a_package_that_is_missing_is_told_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.serve.service_tracer._NEEDED", ("no_such_package.inside",))
    notes = Notes()
    async with service_tracer({SENT_TO: "http://127.0.0.1:1"}, notes, SecretRegistry()) as tracer:
        assert isinstance(tracer, NoTracer)
    [note] = notes.of("spans_unavailable")
    assert "holon-runtime[otel]" in note.message


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """Somebody who takes spans, on a port of their own."""
    taken: list[bytes] = []

    class Taker(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Taker) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", taken
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.requirement("journal:spans-go-where-the-environment-says")
async def test_spans_are_sent_by_otlp_and_the_last_of_them_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secrets = SecretRegistry()
    with collector() as (address, taken):
        environ = {SENT_TO: address, "OTEL_EXPORTER_OTLP_HEADERS": f"x-key=Bearer%20{CANARY}"}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        async with service_tracer(environ, Notes(), secrets) as tracer:
            assert isinstance(tracer, SpanTracer)
            with tracer.turn(MAIN, TurnId("turn_1")) as span:
                span.ended(Finish(), TokenUsage(input_tokens=5), 1)
    [body] = taken
    assert b"holon.turn" in body
    assert b"turn_1" in body
    assert secrets.redact(f"with {CANARY}") == "with [secret:otlp_header]"
