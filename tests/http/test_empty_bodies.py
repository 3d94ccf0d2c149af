"""Routes that take nothing, and what every control request may say about itself."""

import pytest

from holon.http.table import ROUTES
from holon.model.limits import HTTP_BODY_BYTES_MAX, HTTP_NO_BODY_BYTES_MAX
from holon.model.queue import AuthorityClass
from holon.wire.requests import ControlBody
from tests.support.control_server import MAIN, ControlServer
from tests.support.http_caller import JSON

STOP = f"/control/agents/{MAIN}/stop"
MODEL = f"/control/agents/{MAIN}/model"
TEXT = (b"content-type", b"text/plain")


@pytest.mark.parametrize("body", [b"", b"{}", b" { } "])
async def test_nothing_may_be_said_with_an_empty_object(server: ControlServer, body: bytes) -> None:
    answer = await server.operator.send("POST", STOP, body=body, headers=[JSON])
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    "body",
    [b'{"a":1}', b"[]", b"null", b"{", b"x" * (HTTP_NO_BODY_BYTES_MAX + 1)],
    ids=lambda body: body[:8].decode(),
)
async def test_a_route_that_takes_nothing_says_so(server: ControlServer, body: bytes) -> None:
    answer = await server.operator.send("POST", STOP, body=body, headers=[JSON])
    said = answer.json()
    assert (answer.status, said["code"]) == (400, "body_not_taken")
    assert said["error"] == "this route accepts no body"
    assert "{}" in said["hint"]
    agent = await server.host.reads.agents.agent(MAIN)
    assert agent is not None
    assert agent.posture.status != "stopped"


async def test_s05_s23_a_body_nobody_takes_is_looked_at_as_any_other(
    server: ControlServer,
) -> None:
    plain = await server.operator.send("POST", STOP, body=b"{}", headers=[TEXT])
    assert (plain.status, plain.json()["code"]) == (415, "unsupported_media_type")
    huge = b"x" * (HTTP_BODY_BYTES_MAX + 1)
    assert (await server.operator.send("POST", STOP, body=huge, headers=[JSON])).status == 413
    assert (await server.stranger.send("POST", STOP, body=b"{}", headers=[JSON])).status == 401


async def test_the_operators_own_trust_may_be_said_and_chooses_nothing(
    server: ControlServer,
) -> None:
    prompt = {"text": "hello", "trust": "trusted_operator"}
    answer = await server.operator.post(f"/control/agents/{MAIN}/prompt", prompt)
    assert answer.status == 200, answer.body
    (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
    assert entry.message.authority_class is AuthorityClass.OPERATOR_INSTRUCTION
    assert (await server.operator.post(STOP, {"trust": "trusted_operator"})).status == 200


@pytest.mark.parametrize("path", [STOP, f"/control/agents/{MAIN}/prompt"])
async def test_a_label_nobody_knows_is_refused(server: ControlServer, path: str) -> None:
    answer = await server.operator.post(
        path, {"text": "a", "trust": "root"} if path != STOP else {"trust": "root"}
    )
    assert (answer.status, answer.json()["code"]) == (400, "trust_not_claimable")


def test_every_control_body_has_room_for_a_label_of_trust() -> None:
    for route in ROUTES:
        if route.access.value == "control" and route.takes is not None:
            assert issubclass(route.takes, ControlBody), route.path


async def test_an_effort_is_refused_by_name_with_the_setting_that_has_it(
    server: ControlServer,
) -> None:
    asked = {"model": "scripted/a", "reasoning_effort": "high"}
    answer = await server.operator.post(MODEL, asked)
    said = answer.json()
    assert (answer.status, said["code"]) == (400, "reasoning_effort_unsupported")
    assert said["field"] == "reasoning_effort"
    assert "providers.<id>.reasoning_effort" in said["hint"]
