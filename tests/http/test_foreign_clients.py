"""What senders and clients that Holon did not write need of the surface."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest

from holon.http.app import RouteMatch, RouteNotFound, RouteTable
from holon.http.exchange import Header
from holon.http.openapi import openapi_document
from holon.http.table import ROUTES
from holon.model.queue import AdmissionContext, AuthorityClass, WebhookOrigin
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server

WEBHOOK = f"/webhooks/generic/{MAIN}"
SECRET, BODY = b"It's a Secret to Everybody", b'{"action":"opened"}'
TABLE = RouteTable(ROUTES)


def hub(body: bytes = BODY, secret: bytes = SECRET) -> list[Header]:
    made = hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
    return [
        (b"content-type", b"application/json"),
        (b"x-github-event", b"pull_request"),
        (b"x-github-delivery", b"72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        (b"x-hub-signature-256", b"sha256=" + made),
    ]


def options() -> ServerOptions:
    return ServerOptions(
        webhook_secrets={"github": SECRET, "forge": SECRET, "emptied": None},
        github_signers=frozenset({"github", "emptied"}),
    )


@pytest.mark.requirement("clients:github-webhooks")
async def test_a_delivery_of_github_is_verified_and_keeps_its_event(tmp_path: Path) -> None:
    async with control_server(tmp_path, options()) as server:
        answer = await server.stranger.send("POST", WEBHOOK, body=BODY, headers=hub())
        assert answer.status == 200, answer.body
        (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
        assert entry.message.origin == WebhookOrigin(source="github", event_type="pull_request")
        assert entry.message.authority_class is AuthorityClass.INTEGRATION_SIGNAL
        assert entry.message.admission_context is AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY
        replayed = [h for h in hub() if h[0] != b"x-github-delivery"]
        again = await server.stranger.send("POST", WEBHOOK, body=BODY, headers=replayed)
        assert again.json()["duplicate"] is True


def known_digest() -> bytes:
    return b"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


@pytest.mark.requirement("clients:github-webhooks")
async def test_the_example_in_githubs_documentation_holds(tmp_path: Path) -> None:
    async with control_server(tmp_path, options()) as server:
        headers = [(b"x-hub-signature-256", b"sha256=" + known_digest())]
        answer = await server.stranger.send("POST", WEBHOOK, body=b"Hello, World!", headers=headers)
        assert answer.status == 200, answer.body


def without(name: bytes, *more: Header) -> list[Header]:
    return [*(h for h in hub() if h[0] != name), *more]


FORGERIES: dict[str, list[Header]] = {
    "another secret": hub(secret=b"guess"),
    "another body": hub(body=b"{}"),
    "twice": [*hub(), hub()[-1]],
    "no scheme": without(b"x-hub-signature-256", (b"x-hub-signature-256", b"0" * 64)),
    "sha1": without(b"x-hub-signature-256", (b"x-hub-signature-256", b"sha1=" + b"0" * 40)),
    "empty": without(b"x-hub-signature-256", (b"x-hub-signature-256", b"")),
    "a source of another form": [*hub(), (b"x-holon-source", b"forge")],
    "a source nobody set up": [*hub(), (b"x-holon-source", b"nobody")],
}


@pytest.mark.requirement("clients:github-webhooks")
@pytest.mark.parametrize("name", FORGERIES)
async def test_another_signature_of_that_form_is_refused(tmp_path: Path, name: str) -> None:
    async with control_server(tmp_path, options()) as server:
        headers = FORGERIES[name]
        answer = await server.stranger.send("POST", WEBHOOK, body=BODY, headers=headers)
        assert (answer.status, answer.json()["code"]) == (401, "bad_signature")
        shut = [*hub(), (b"x-holon-source", b"emptied")]
        answer = await server.stranger.send("POST", WEBHOOK, body=BODY, headers=shut)
        assert (answer.status, answer.json()["code"]) == (401, "webhook_disabled")


@pytest.mark.requirement("clients:github-webhooks")
async def test_the_event_of_github_is_the_label_also_with_the_token(server: ControlServer) -> None:
    headers = [(b"x-github-event", b"push")]
    answer = await server.operator.send("POST", WEBHOOK, body=b"x", headers=headers)
    (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
    assert entry.message.origin == WebhookOrigin(source="generic", event_type="push")


@pytest.mark.requirement("clients:escaped-segments")
@pytest.mark.parametrize("path", ["/agents/%6dain/status", "/api/agents/m%61in/status"])
async def test_an_escaped_segment_is_the_name_it_stands_for(
    server: ControlServer, path: str
) -> None:
    plain = await server.operator.get(f"/agents/{MAIN}/status")
    escaped = await server.operator.get(path)
    assert escaped.status == 200
    assert escaped.json()["identity"] == plain.json()["identity"]


@pytest.mark.parametrize(
    "written",
    [
        "a%2Fb",
        "a%2fb",
        "a%00b",
        "%00",
        "%2E",
        "%2e%2e",
        "..%2f",
        "a%0ab",
        "a%zz",
        "a%4",
        "%",
        "%ff",
    ],
)
@pytest.mark.requirement("clients:escaped-segments")
def test_nothing_is_smuggled_into_a_name(written: str) -> None:
    assert TABLE.find("GET", f"/agents/{written}/status") == RouteNotFound()


@pytest.mark.requirement("clients:escaped-segments")
def test_what_is_decoded_is_decoded_once_and_not_for_capabilities() -> None:
    found = TABLE.find("GET", "/agents/a%252Fb/status")
    assert isinstance(found, RouteMatch)
    assert found.params == {"agent_id": "a%2Fb"}
    found = TABLE.find("POST", "/callbacks/wake/trig_1%2Esecret")
    assert isinstance(found, RouteMatch)
    assert found.params == {"token": "trig_1%2Esecret"}
    assert TABLE.find("POST", "/callbacks/w%61ke/trig_1.secret") == RouteNotFound()


TIMERS = f"/control/agents/{MAIN}/timers"


@pytest.mark.requirement("clients:whole-decimals-are-integers")
@pytest.mark.parametrize("written", ["60000.0", "6e4", "6.0E+4"])
async def test_a_number_without_a_fraction_is_an_integer(
    server: ControlServer, written: str
) -> None:
    body = f'{{"duration_ms": {written}, "interval_ms": {written}}}'.encode()
    headers = [(b"content-type", b"application/json")]
    answer = await server.operator.send("POST", TIMERS, body=body, headers=headers)
    assert answer.status == 200, answer.body
    assert answer.json()["timer"]["duration_ms"] == 60_000


@pytest.mark.requirement("clients:whole-decimals-are-integers")
@pytest.mark.parametrize("written", ["60000.5", "1e300", "1e-3", '"60000"', "true", "0.0"])
async def test_any_other_number_is_not(server: ControlServer, written: str) -> None:
    body = f'{{"duration_ms": {written}}}'.encode()
    headers = [(b"content-type", b"application/json")]
    answer = await server.operator.send("POST", TIMERS, body=body, headers=headers)
    assert answer.status == 400, answer.body


@pytest.mark.requirement("clients:whole-decimals-are-integers")
@pytest.mark.parametrize(
    "rest", [b'"summary":NaN}', b'"summary":"\xff"}', b'"summary":', b"[" * 9_999]
)
async def test_a_broken_body_behind_such_a_number_is_the_clients_fault(
    server: ControlServer, rest: bytes
) -> None:
    headers = [(b"content-type", b"application/json")]
    body = b'{"duration_ms":1000.0,' + rest
    answer = await server.operator.send("POST", TIMERS, body=body, headers=headers)
    assert (answer.status, answer.json()["code"]) == (400, "bad_syntax")


async def test_free_json_keeps_its_numbers_as_they_came(server: ControlServer) -> None:
    body = b'{"json": {"a": 1.0}}'
    headers = [(b"content-type", b"application/json")]
    answer = await server.operator.send(
        "POST", f"/agents/{MAIN}/enqueue", body=body, headers=headers
    )
    (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
    assert repr(entry.message.body.value) == "{'a': 1.0}"  # type: ignore[union-attr]


def every_schema(value: Any) -> list[dict[str, Any]]:
    found = [value] if isinstance(value, dict) else []
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found + [each for part in inside for each in every_schema(part)]


@pytest.mark.requirement("clients:generated-clients-work")
def test_the_document_names_types_by_themselves_and_single_values_as_const() -> None:
    document = openapi_document(ROUTES, version="0")
    schemas = document["components"]["schemas"]
    assert [name for name in schemas if not name.isidentifier()] == []
    everything = every_schema(document)
    assert [each for each in everything if len(each.get("enum", "ab")) == 1] == []
    refs = {
        each["$ref"].rpartition("/")[2]
        for each in everything
        if "/schemas/" in str(each.get("$ref"))
    }
    assert refs <= set(schemas)
