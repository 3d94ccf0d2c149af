"""Requests nobody should send, over a real server: refused by name, with nothing changed."""

from typing import Any

import anyio
import h11
import pytest

from holon.http.exchange import Header
from holon.model.limits import HTTP_AUTH_FAILURES_COUNT_MAX
from holon.model.queue import AuthorityClass, WebhookOrigin
from tests.http.serving import make_agent, settled
from tests.support.control_server import MAIN, ControlServer
from tests.support.http_caller import JSON

PROMPT = f"/control/agents/{MAIN}/prompt"
ENQUEUE = f"/agents/{MAIN}/enqueue"
STOP = f"/control/agents/{MAIN}/stop"
SHUTDOWN = "/control/runtime/shutdown"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "TRACE", "OPTIONS"])
async def test_s06_another_method_is_told_and_counts_as_no_guess(
    server: ControlServer, method: str
) -> None:
    bad: Header = (b"authorization", b"Bearer wrong")
    override: Header = (b"x-http-method-override", b"POST")
    for _ in range(HTTP_AUTH_FAILURES_COUNT_MAX + 5):
        answer = await server.stranger.send(method, STOP, headers=[bad, override])
        assert answer.status == 405
    assert answer.header(b"allow") == b"POST"
    assert (await server.stranger.send("POST", STOP, headers=[bad])).status == 401
    agent = await server.host.reads.agents.agent(MAIN)
    assert agent is not None
    assert agent.posture.status != "stopped"


CLAIMS: dict[str, tuple[list[Header], str]] = {
    "in headers": ([(b"x-holon-authority", b"admin"), (b"x-scope", b"admin")], ""),
    "in another header": ([(b"x-forwarded-user", b"root")], ""),
}


@pytest.mark.parametrize("name", CLAIMS)
async def test_s15_authority_comes_from_the_door_not_from_a_claim(
    server: ControlServer, name: str
) -> None:
    headers, query = CLAIMS[name]
    answer = await server.operator.post(ENQUEUE + query, {"text": "a"}, headers=headers)
    (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
    assert entry.message.authority_class is AuthorityClass.INTEGRATION_SIGNAL
    for path in (PROMPT, ENQUEUE):
        assert (await server.operator.post(f"{path}?scope=admin", {"text": "a"})).status == 400
    claimed = {"text": "a", "scope": "admin"}
    assert (await server.operator.post(PROMPT, claimed)).status == 400
    assert (await server.operator.post(ENQUEUE, claimed)).status == 400


S16: dict[str, dict[str, Any]] = {
    "an operator": {"origin": {"kind": "operator"}},
    "a trust": {"trust": "trusted_operator"},
    "an authority": {"authority_class": "operator_instruction"},
    "a cut": {"priority": "interject"},
    "a kind": {"kind": "operator_prompt"},
}


@pytest.mark.parametrize("name", S16)
async def test_s16_the_public_gets_no_more_than_its_ceiling(
    server: ControlServer, name: str
) -> None:
    before = await server.host.reads.events.event_bounds(MAIN)
    answer = await server.operator.post(ENQUEUE, {"text": "a", **S16[name]})
    assert answer.status in (400, 403), answer.body
    assert await server.host.reads.events.event_bounds(MAIN) == before


async def test_s16_metadata_binds_nothing(server: ControlServer) -> None:
    item = await server.host.work.create(MAIN, objective="mine")
    asked = {"text": "a", "metadata": {"work_item_id": item.id}}
    answer = await server.operator.post(ENQUEUE, asked)
    (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
    assert entry.message.origin == WebhookOrigin(source="http")
    assert entry.message.work_item_id is None


async def test_s17_nothing_but_the_token_stops_anything(server: ControlServer) -> None:
    trigger = await server.host.triggers.ensure(MAIN)
    token = (server.host.triggers.url_of(trigger) or "").rpartition("/")[2].encode()
    for path in (STOP, SHUTDOWN):
        assert (await server.stranger.post(path)).status == 401
        borrowed = await server.stranger.post(
            path, headers=[(b"authorization", b"Bearer " + token)]
        )
        assert borrowed.status == 401
        in_query = await server.stranger.post(f"{path}?token=x")
        assert in_query.status == 401
    assert not server.shutdown_requested.is_set()
    agent = await server.host.reads.agents.agent(MAIN)
    assert agent is not None
    assert agent.posture.status != "stopped"


S28: dict[str, bytes] = {
    "a hundred thousand deep": b'{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "five thousand digits": b'{"text":' + b"9" * 5_000 + b"}",
    "not a number": b'{"text":NaN}',
    "without end": b'{"text":Infinity}',
    "a name twice": b'{"text":"a","text":"b"}',
    "a name twice, by an escape": b'{"text":"a","te\\u0078t":"b"}',
    "half a character": b'{"text":"\\ud800"}',
    "no text at all": b'{"text":"\xff"}',
    "a NUL": b'{"text":"a\\u0000b"}',
    "a NUL, raw": b'{"text":"a\x00b"}',
    "two values": b'{"text":"a"}{"text":"b"}',
    "a comment": b'{"text":"a"/**/}',
    "a list": b"[]",
    "nothing": b"",
    "a cut": b'{"text":"a',
}


@pytest.mark.parametrize("name", S28)
async def test_s28_json_that_readers_could_differ_on_is_refused(
    server: ControlServer, name: str
) -> None:
    before = await server.host.reads.events.last_log_seq()
    answer = await server.operator.send("POST", PROMPT, body=S28[name], headers=[JSON])
    assert answer.status == 400, answer.body
    assert answer.json()["code"] in ("bad_syntax", "bad_shape")
    assert await server.host.reads.events.last_log_seq() == before


async def test_s28_a_number_no_store_holds_is_refused(server: ControlServer) -> None:
    path = f"/control/agents/{MAIN}/timers"
    for number in (b"9223372036854775808", b"1e400", b"9" * 5_000):
        body = b'{"duration_ms":' + number + b"}"
        answer = await server.operator.send("POST", path, body=body, headers=[JSON])
        assert answer.status == 400, number[:30]


async def test_s28_an_escape_that_only_looks_like_a_nul_is_text(server: ControlServer) -> None:
    answer = await server.operator.post(PROMPT, {"text": "write \\u0000 here"})
    assert answer.status == 200


S29 = (
    "../main",
    "main/../x",
    "%2e%2e",
    "%2E%2E%2Fmain",
    "a%00b",
    "a" * 10_000,
    "%E2%80%AEniam",
    "m%D0%B0in",
    "",
    ".",
    "..",
    "Main",
    "main%20",
    "-rf",
)


@pytest.mark.parametrize("name", S29, ids=lambda name: name[:16] or "empty")
async def test_s29_an_id_is_an_id_and_never_a_path(server: ControlServer, name: str) -> None:
    for method, path in (
        ("GET", f"/agents/{name}/status"),
        ("POST", f"/control/agents/{name}/create"),
        ("GET", f"/agents/{MAIN}/tasks/{name}"),
        ("POST", f"/control/agents/{MAIN}/timers/{name}/cancel"),
    ):
        answer = await server.operator.send(method, path)
        assert answer.status in (400, 404), (path, answer.status)
    agents = anyio.Path(server.home / "agents")
    made = [each.name async for each in agents.iterdir()] if await agents.exists() else []
    assert set(made) <= {MAIN}
    assert await server.host.reads.agents.restless(now=server.context.clock.now()) == []


async def test_s47_an_id_is_never_part_of_a_query(server: ControlServer) -> None:
    for hostile in ("main'--", "main%27%20or%201=1", "main;drop", '"main"'):
        answer = await server.operator.get(f"/agents/{hostile}/status")
        assert (answer.status, answer.json()["code"]) == (400, "bad_id")
    for query in ("after=x'--", "after=%27or%201", "sort=id", "limit=1;2"):
        answer = await server.operator.get(f"/agents/{MAIN}/tasks?{query}")
        assert answer.status == 400


async def test_s72_what_is_anothers_does_not_exist_here(server: ControlServer) -> None:
    other = await make_agent(server, "other")
    timer = await server.host.timers.create(MAIN, after_ms=3_600_000)
    item = await server.host.work.create(MAIN, objective="mine")
    message_id = await settled(server)
    brief = (await server.operator.get("/briefs")).json()["briefs"][0]["id"]
    reads = {
        f"timers/{timer.id}": "timers/timer_none",
        f"work-items/{item.id}": "work-items/work_none",
        f"messages/{message_id}": "messages/msg_none",
        f"briefs/{brief}": "briefs/brief_none",
    }
    for found, missing in reads.items():
        assert (await server.operator.get(f"/agents/{MAIN}/{found}")).status == 200
        hidden = await server.operator.get(f"/agents/{other}/{found}")
        absent = await server.operator.get(f"/agents/{other}/{missing}")
        assert hidden.status == absent.status == 404
        here, none = (each.rpartition("/")[2].encode() for each in (found, missing))
        assert hidden.body.replace(here, none) == absent.body
    mutations = (f"timers/{timer.id}/cancel", f"work-items/{item.id}/complete")
    for path in (*mutations, f"work-items/{item.id}/pick"):
        refused = await server.operator.post(f"/control/agents/{other}/{path}")
        assert refused.status == 404
    kept = await server.host.reads.wake.timer(timer.id)
    assert kept is not None
    assert kept.status == "active"


ENDLESS = "x" * 100_000
TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "workdir": ("tasks", {"summary": "s", "cmd": "true", "workdir": ENDLESS}),
    "shell": ("tasks", {"summary": "s", "cmd": "true", "shell": ENDLESS}),
    "cmd": ("tasks", {"summary": "s", "cmd": ENDLESS}),
    "run id": ("current-run/abort", {"run_id": ENDLESS}),
    "template": ("create", {"template": ENDLESS}),
    "model": ("model", {"model": ENDLESS}),
    "skill": ("skills/install", {"name": ENDLESS}),
    "workspace": ("workspace/attach", {"path": f"/{ENDLESS}"}),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_without_end_is_refused_and_not_said_back(
    server: ControlServer, name: str
) -> None:
    part, body = TEXTS[name]
    answer = await server.operator.post(f"/control/agents/{MAIN}/{part}", body)
    assert answer.status == 400
    assert len(answer.body) < 1_000


async def test_a_run_that_is_over_is_not_aborted(server: ControlServer) -> None:
    path = f"/control/agents/{MAIN}/current-run/abort"
    idle = await server.operator.post(path, {"run_id": "turn_1"})
    assert (idle.status, idle.json()["code"]) == (409, "no_current_run")


async def test_a_bug_in_a_stream_ends_one_connection_and_not_the_host(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(type(server.context.frames), "of_agent", broken)
    async with server.operator.stream(f"/agents/{MAIN}/events/stream?after_seq=0") as stream:
        opened = await stream.frame()
        assert opened is not None
        with pytest.raises(h11.RemoteProtocolError):
            await stream.frame()
    assert (await server.operator.get("/status")).status == 200
