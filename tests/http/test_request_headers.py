"""Every header a handler reads stands in its row, and in what is told of it."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from holon.http.context import HttpContext
from holon.http.openapi import openapi_document
from holon.http.request_headers import idempotency_key
from holon.http.route import Call, RequestHeader
from holon.http.table import ROUTES

ROWS = {f"{route.method} {route.path}": route for route in ROUTES}
HTTP_PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md"
FORM = re.compile(rb"[a-z]+(-[a-z0-9]+)+")
ELSEWHERE = frozenset({b"content-type"})  # a row's `takes` says it
OF_REPLIES = frozenset({b"retry-after"})


def headers_read(start: object) -> set[bytes]:
    """The names of headers in a handler and in whatever of holon.http it leads to."""
    waiting, seen, found = [start], set[int](), set[bytes]()
    while waiting:
        place = waiting.pop()
        if id(place) in seen or not is_ours(place):
            continue
        seen.add(id(place))
        for value in values_in(place):
            found.update(header_names(value))
            waiting.append(value)
    return found - OF_REPLIES


def is_ours(value: object) -> bool:
    module = getattr(value, "__module__", "") or ""
    is_followed = module.startswith(("holon.http.", __name__)) and module != "holon.http.route"
    return is_followed and (inspect.isfunction(value) or inspect.isclass(value))


def values_in(place: object) -> Iterator[object]:
    """Every constant a definition holds, and all that its names stand for."""
    assert inspect.isfunction(place) or inspect.isclass(place)
    known = vars(inspect.getmodule(place))
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(place)))):
        match node:
            case ast.Name(id=name) if name in known:
                yield known[name]
            case ast.Constant(value=value):
                yield value
            case _:
                continue


def header_names(value: object) -> Iterator[bytes]:
    match value:
        case bytes() if FORM.fullmatch(value):
            yield value
        case RequestHeader():
            yield value.key
        case tuple():
            for part in value:
                yield from header_names(part)
        case _:
            return


@pytest.mark.requirement("http:one-table")
@pytest.mark.parametrize("name", ROWS)
def test_a_row_names_the_headers_its_handler_reads(name: str) -> None:
    route = ROWS[name]
    assert {header.key for header in route.headers} == headers_read(route.answer) - ELSEWHERE


def test_a_header_that_is_read_in_passing_is_found() -> None:
    async def handler(context: HttpContext, call: Call) -> object:
        del context
        return idempotency_key(call), call.head.value(b"x-rumour")

    assert headers_read(handler) == {b"idempotency-key", b"x-rumour"}


def test_the_usual_headers_are_described_where_clients_look() -> None:
    document = openapi_document(ROUTES, version="0")
    told = {
        (path, each["name"])
        for path, methods in document["paths"].items()
        for operation in methods.values()
        for each in operation.get("parameters", ())
        if each["in"] == "header"
    }
    webhook, wake = "/webhooks/generic/{agent_id}", "/callbacks/wake/{token}"
    assert told >= {
        ("/control/agents/{agent_id}/prompt", "Idempotency-Key"),
        ("/enqueue", "Idempotency-Key"),
        (webhook, "Webhook-Id"),
        (webhook, "Webhook-Timestamp"),
        (webhook, "Webhook-Signature"),
        (webhook, "X-Holon-Source"),
        (wake, "X-Holon-Resource"),
        (wake, "X-Correlation-Id"),
        ("/events/stream", "Last-Event-ID"),
        ("/agents/{agent_id}/events/stream", "Last-Event-ID"),
    }
    page = HTTP_PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for _, name in told)
