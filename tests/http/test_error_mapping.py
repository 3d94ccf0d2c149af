"""Which status tells a caller that the disk takes nothing, and that every refusal has a hint."""

import pytest

from holon.http.errors import reply_for
from holon.http.exchange import Header
from holon.model.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from holon.model.limits import HTTP_BODY_BYTES_MAX
from tests.support.control_server import MAIN, ControlServer
from tests.support.http_caller import JSON


@pytest.mark.requirement("hostile:full-disk-refuses-writes")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreFullError("full"), 507),
        (StoreReadOnlyError("read-only"), 507),
        (StoreBusyError("busy"), 503),
        (StoreBrokenError("broken"), 503),
        (StoreClosedError("closed"), 503),
    ],
    ids=lambda value: getattr(value, "code", value),
)
def test_a_store_that_takes_nothing_is_told_with_a_hint(error: StoreError, status: int) -> None:
    reply = reply_for(error)
    assert reply.status == status
    assert error.hint is not None
    assert error.code.encode() in reply.body
    assert error.hint.encode() in reply.body


PROMPT = f"/control/agents/{MAIN}/prompt"
REFUSED: dict[str, tuple[str, str, list[Header], bytes]] = {
    "not_found": ("GET", "/nobody/serves/this", [], b""),
    "method_not_allowed": ("GET", PROMPT, [], b""),
    "foreign_origin": ("POST", PROMPT, [(b"origin", b"https://evil.example")], b""),
    "unsupported_media_type": ("POST", PROMPT, [], b"x"),
    "body_too_large": ("POST", PROMPT, [JSON], b"x" * (HTTP_BODY_BYTES_MAX + 1)),
    "bad_syntax": ("POST", PROMPT, [JSON], b""),
    "bad_shape": ("POST", PROMPT, [JSON], b"{}"),
    "bad_enum": ("POST", f"/control/agents/{MAIN}/control", [JSON], b'{"action":"x"}'),
    "bad_query": ("GET", "/status?x=1", [], b""),
}


@pytest.mark.parametrize("code", REFUSED)
async def test_whoever_is_refused_is_told_what_to_do(server: ControlServer, code: str) -> None:
    method, path, headers, body = REFUSED[code]
    said = (await server.operator.send(method, path, headers=headers, body=body)).json()
    assert said["code"] == code
    assert said["hint"]
    fields = {"bad_shape": "text", "bad_enum": "action", "bad_query": "x"}
    assert said.get("field") == fields.get(code)
