"""Requests drawn from the OpenAPI document, over a real server, with and without the token.

Each operation gets a few requests that fit its schema and a few that do not; which ones is decided
by the document alone, so that a run can be repeated. Streams are left out: they have no end.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import pytest
import requests
import schemathesis
from anyio import to_thread
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from holon.http.context import HttpContext
from holon.http.exchange import EVENT_STREAM_TYPE
from holon.http.openapi import openapi_document, operation_id
from holon.http.route import Access, Route
from holon.http.table import ROUTES
from scripts.reference.refusal_codes import refusals_seen
from tests.support.control_server import MAIN, TOKEN, ControlServer

pytestmark = pytest.mark.long

EXAMPLES_COUNT: Final = int(os.environ.get("HOLON_DRILL_REQUESTS", "2"))  # a mode and operation
TIMEOUT_S: Final = 30
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPEN: Final = (Access.OPEN, Access.CAPABILITY)
# What a path that leads nowhere, or a head that is none, is told before any operation is found.
NOWHERE: Final = frozenset({("not_found", 404), ("method_not_allowed", 405), ("bad_request", 400)})
WHOLE: Final = [route for route in ROUTES if EVENT_STREAM_TYPE.decode() not in route.media]
LISTED: Final = frozenset((row.code, row.status) for row in refusals_seen())
MODES: Final = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)

Drawn: TypeAlias = "schemathesis.Case[Any]"
Answered: TypeAlias = Callable[[Drawn, schemathesis.Response], None]


@cache
def described() -> Any:
    return schemathesis.openapi.from_dict(openapi_document(ROUTES, version="0"))


def named(route: Route[HttpContext]) -> str:
    return operation_id(route.method, route.path)


def is_nowhere(response: schemathesis.Response) -> bool:
    """Whether the request never got as far as its operation."""
    if response.status_code not in {status for _, status in NOWHERE}:
        return False
    return (response.json().get("code"), response.status_code) in NOWHERE


def send_drawn(
    route: Route[HttpContext],
    mode: schemathesis.GenerationMode,
    *,
    base_url: str,
    token: str | None,
    answered: Answered,
) -> None:
    """Send requests drawn for an operation, and show each with its answer."""
    operation = described()[route.path][route.method]
    known = "{agent_id}" in route.path and mode is schemathesis.GenerationMode.POSITIVE
    drawn = operation.as_strategy(
        generation_mode=mode, path_parameters={"agent_id": str(MAIN)} if known else None
    )
    headers = {} if token is None else {"authorization": f"Bearer {token}"}

    @settings(
        max_examples=EXAMPLES_COUNT,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=drawn)
    def each(case: Drawn) -> None:
        response = case.call(base_url=base_url, session=session, headers=headers, timeout=TIMEOUT_S)
        answered(case, response)

    with requests.Session() as session:
        session.trust_env = False
        each()


def url_of(server: ControlServer) -> str:
    return f"http://{server.stranger.host}:{server.stranger.port}"


@pytest.mark.parametrize(
    ("route", "mode"),
    # Who takes nothing, or anything, cannot be sent what does not fit.
    [(route, mode) for route in WHOLE for mode in MODES[: 1 if route.access in OPEN else None]],
    ids=lambda part: named(part) if isinstance(part, Route) else part.value,
)
async def test_whatever_is_drawn_is_answered_as_the_document_says(
    server: ControlServer, route: Route[HttpContext], mode: schemathesis.GenerationMode
) -> None:
    def answered(case: Drawn, response: schemathesis.Response) -> None:
        if not is_nowhere(response):
            case.validate_response(response, checks=list(CHECKS))
        if response.status_code >= 400:
            assert (response.json()["code"], response.status_code) in LISTED

    def fuzz() -> None:
        send_drawn(route, mode, base_url=url_of(server), token=TOKEN, answered=answered)

    await to_thread.run_sync(fuzz)
    assert (await server.operator.get("/status")).status == 200


@pytest.mark.parametrize("route", [route for route in WHOLE if route.access not in OPEN], ids=named)
async def test_without_the_token_nothing_drawn_gets_in(
    server: ControlServer, route: Route[HttpContext]
) -> None:
    seen: list[int] = []

    def answered(case: Drawn, response: schemathesis.Response) -> None:
        seen.append(response.status_code)
        # 429: with many draws, more wrong tries come in than a minute allows.
        assert response.status_code in (401, 429) or is_nowhere(response), response.text
        if response.status_code == 401:
            assert response.json()["code"] in ("unauthorized", "bad_signature")
            case.validate_response(response, checks=list(CHECKS))

    def fuzz() -> None:
        for mode in MODES:
            send_drawn(route, mode, base_url=url_of(server), token=None, answered=answered)

    before = await server.host.reads.events.last_log_seq()
    await to_thread.run_sync(fuzz)
    assert 401 in seen
    assert await server.host.reads.events.last_log_seq() == before
    assert not server.shutdown_requested.is_set()
