"""External triggers over a real server: who gets through, what is kept, and who learns what."""

import base64
from pathlib import Path
from typing import Any

import anyio
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.http.access import DeliveryRates
from holon.http.exchange import Header, Peer, RequestHead, SocketKind
from holon.http.route import Call, CallerClass, NoQuery
from holon.http.routes.triggers import show
from holon.model.events.event import BriefCreated, MessageAdmitted
from holon.model.values import AgentId
from holon.model.wake import CallbackDelivered, CallbackRefused, TriggerDeliveryMode, WakeHint
from tests.http.serving import events_of, until_event
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.http_caller import Answer
from tests.support.manual_clock import ManualClock

NOBODY = AgentId("nobody")


async def the_trigger(server: ControlServer) -> dict[str, Any]:
    answer = await server.operator.post(f"/control/agents/{MAIN}/external-trigger")
    assert answer.status == 200, answer.body
    return dict(answer.json()["external_trigger"])


async def the_path(server: ControlServer) -> str:
    url = str((await the_trigger(server))["trigger_url"])
    return url.removeprefix(server.context.facts.base_url)


async def hold_back(server: ControlServer) -> None:
    """Keep hints where they can be looked at: a paused agent takes them and does nothing."""
    await server.host.control.pause(MAIN)


async def hints(server: ControlServer) -> list[WakeHint]:
    surface = await server.host.reads.agents.agent_surface(MAIN)
    assert surface is not None
    return list(surface.hints)


def same(answer: Answer, other: Answer) -> bool:
    dated = {b"date"}
    mine = [h for h in answer.headers if h[0] not in dated]
    theirs = [h for h in other.headers if h[0] not in dated]
    return (answer.status, answer.body, mine) == (other.status, other.body, theirs)


@pytest.mark.requirement("triggers:wakes-the-agent")
async def test_a_delivery_with_a_body_wakes_a_sleeping_agent_into_a_turn(
    server: ControlServer,
) -> None:
    answer = await server.stranger.send("POST", await the_path(server), body=b"the build is red")
    assert (answer.status, answer.json()["result"]) == (
        200,
        {
            "agent_id": "main",
            "external_trigger_id": (await the_trigger(server))["external_trigger_id"],
            "disposition": "triggered",
            "scope": "agent",
            "delivery_mode": "wake_hint",
        },
    )
    await until_event(server.host, BriefCreated)


@pytest.mark.requirement("triggers:one-descriptor")
async def test_an_agent_has_one_trigger_however_often_and_at_once_it_is_asked_for(
    server: ControlServer,
) -> None:
    seen: set[str] = set()

    async def look() -> None:
        seen.add(str(await the_trigger(server)))

    async with anyio.create_task_group() as looking:
        for _ in range(12):
            looking.start_soon(look)
    assert len(seen) == 1
    trigger = await the_trigger(server)
    assert (trigger["target_agent_id"], trigger["delivery_mode"]) == ("main", "wake_hint")
    assert (trigger["status"], trigger["delivery_count"]) == ("active", 0)


@pytest.mark.requirement("triggers:counts")
async def test_deliveries_are_counted_and_the_latest_has_a_moment(server: ControlServer) -> None:
    path = await the_path(server)
    for _ in range(3):
        assert (await server.stranger.send("POST", f"/api{path}")).status == 200
    trigger = await the_trigger(server)
    assert trigger["delivery_count"] == 3
    assert trigger["last_delivered_at"] is not None


async def a_stranger_sees(server: ControlServer, path: str) -> Answer:
    return await server.stranger.send("POST", path, body=b"{}")


@pytest.mark.requirement("triggers:misses-are-alike")
async def test_every_miss_gets_the_answer_of_a_path_nobody_serves(server: ControlServer) -> None:
    path = await the_path(server)
    head, _, token = path.rpartition("/")
    trigger_id, _, secret = token.rpartition(".")
    other = "A" if secret[0] != "A" else "B"
    misses = {
        "unknown id": f"{head}/trig_0.{secret}",
        "wrong secret": f"{head}/{trigger_id}.{other}{secret[1:]}",
        "cut short": f"{path[:-1]}",
        "too long": f"{path}A",
        "other case": f"{head}/{trigger_id}.{secret.swapcase()}",
        "padded": f"{path}=",
        "escaped": f"{head}/{trigger_id}%2E{secret}",
        "escaped secret": f"{head}/{trigger_id}.%{ord(secret[0]):02X}{secret[1:]}",
        "escaped twice": f"{head}/{trigger_id}.%25{ord(secret[0]):02X}{secret[1:]}",
        "trailing slash": f"{path}/",
        "no dot": f"{head}/{trigger_id}{secret}",
        "no secret": f"{head}/{trigger_id}.",
        "only a dot": f"{head}/.",
        "a mile of it": f"{head}/{'x' * 8000}.{secret}",
        "the other alphabet": f"{head}/{trigger_id}.{secret.replace('-', '+').replace('_', '~')}~",
    }
    nothing = await a_stranger_sees(server, "/nobody/serves/this")
    assert nothing.status == 404
    for name, miss in misses.items():
        assert same(await a_stranger_sees(server, miss), nothing), name
    assert (await the_trigger(server))["delivery_count"] == 0


@pytest.mark.requirement("triggers:address-before-body")
async def test_nothing_is_read_of_a_body_for_an_address_that_does_not_open(
    server: ControlServer,
) -> None:
    path = await the_path(server)
    nothing = await server.stranger.announce("/nobody/serves/this")
    assert nothing.status == 404
    for miss in (f"{path}A", "/callbacks/wake/trig_0.x", "/callbacks/enqueue/x"):
        assert same(await server.stranger.announce(miss), nothing)
    await server.host.control.stop(MAIN)
    assert (await server.stranger.announce(path)).status == 409
    assert same(await server.stranger.announce(f"{path}A"), nothing)
    told = await events_of(server.host)
    assert [type(event) for event in told].count(CallbackRefused) == 1
    await server.operator.post(f"/control/agents/{MAIN}/external-trigger/revoke")
    assert same(await server.stranger.announce(path), nothing)


@pytest.mark.requirement("triggers:rotate-and-revoke")
async def test_rotating_voids_the_old_address_and_revoking_the_new_one(
    server: ControlServer,
) -> None:
    nothing = await a_stranger_sees(server, "/nobody/serves/this")
    first = await the_path(server)
    rotated = await server.operator.post(f"/control/agents/{MAIN}/external-trigger/rotate")
    second = await the_path(server)
    assert rotated.json()["external_trigger"]["trigger_url"].endswith(second)
    assert second != first
    assert same(await a_stranger_sees(server, first), nothing)
    assert (await a_stranger_sees(server, second)).status == 200
    revoked = await server.operator.post(f"/control/agents/{MAIN}/external-trigger/revoke")
    assert revoked.json()["external_trigger"]["status"] == "revoked"
    assert "trigger_url" not in revoked.json()["external_trigger"]
    assert same(await a_stranger_sees(server, second), nothing)
    again = await server.operator.post(f"/control/agents/{MAIN}/external-trigger/revoke")
    assert again.json() == revoked.json()
    await server.operator.post(f"/control/agents/{MAIN}/external-trigger/rotate")
    third = await the_path(server)
    assert len({first, second, third}) == 3
    assert same(await a_stranger_sees(server, second), nothing)
    assert (await a_stranger_sees(server, third)).status == 200


@pytest.mark.requirement("triggers:provenance")
async def test_what_a_sender_says_of_itself_is_kept_with_the_hint(server: ControlServer) -> None:
    await hold_back(server)
    labels: list[Header] = [
        (b"content-type", b"application/json"),
        (b"x-holon-source", b"ci"),
        (b"x-holon-resource", b"builds/7"),
        (b"x-correlation-id", b"run-7"),
        (b"x-causation-id", b"push-3"),
    ]
    path = await the_path(server)
    body = b'{"agent_id": "other", "authority_class": "operator_instruction"}'
    answer = await server.stranger.send("POST", path, body=body, headers=labels)
    assert answer.json()["result"]["agent_id"] == "main"
    (hint,) = await hints(server)
    trigger = await the_trigger(server)
    assert hint.external_trigger_id == trigger["external_trigger_id"]
    assert (hint.source, hint.resource) == ("ci", "builds/7")
    assert (hint.correlation_id, hint.causation_id) == ("run-7", "push-3")
    assert (hint.body, hint.content_type) == (body.decode(), "application/json")
    assert hint.delivery_mode is TriggerDeliveryMode.WAKE_HINT
    assert hint.descriptor_delivery_mode is None


@pytest.mark.requirement("triggers:legacy-enqueue")
async def test_an_older_address_wakes_as_well_and_is_marked(server: ControlServer) -> None:
    await hold_back(server)
    path = (await the_path(server)).replace("/callbacks/wake/", "/callbacks/enqueue/")
    answer = await server.stranger.send("POST", path, body=b"hello")
    assert answer.json()["result"]["delivery_mode"] == "wake_hint"
    (hint,) = await hints(server)
    assert hint.descriptor_delivery_mode is TriggerDeliveryMode.ENQUEUE_MESSAGE
    delivered = await until_event(server.host, CallbackDelivered)
    assert isinstance(delivered, CallbackDelivered)
    assert delivered.descriptor_delivery_mode is TriggerDeliveryMode.ENQUEUE_MESSAGE
    admitted = [e for e in await events_of(server.host) if isinstance(e, MessageAdmitted)]
    assert admitted == []


BODIES: dict[str, tuple[bytes, Any]] = {
    "nothing": (b"", None),
    "text": ("grün".encode(), "grün"),
    "not unicode": (b"\xff\xfe", {"base64": base64.b64encode(b"\xff\xfe").decode()}),
    "control characters": (b"a\x00b\x1b[31m", "a\x00b\x1b[31m"),
    "broken JSON": (b'{"a":', '{"a":'),
}


@pytest.mark.requirement("triggers:opaque-body")
@pytest.mark.parametrize("name", BODIES)
async def test_any_body_is_kept_as_it_came(server: ControlServer, name: str) -> None:
    await hold_back(server)
    sent, kept = BODIES[name]
    answer = await server.stranger.send("POST", await the_path(server), body=sent)
    assert answer.status == 200
    (hint,) = await hints(server)
    assert hint.body == kept


@pytest.mark.requirement("triggers:opaque-body")
async def test_a_body_at_the_bound_is_kept_and_one_byte_more_is_refused(
    server: ControlServer,
) -> None:
    await hold_back(server)
    path = await the_path(server)
    whole = b"\x01" * 65_536  # its JSON form is six times as long
    assert (await server.stranger.send("POST", path, body=whole)).status == 200
    (hint,) = await hints(server)
    assert base64.b64decode(hint.body["base64"]) == whole
    assert (await server.stranger.send("POST", path, body=whole + b"x")).status == 413
    assert (await the_trigger(server))["delivery_count"] == 1


@pytest.mark.requirement("triggers:coalesce")
async def test_repeats_of_a_source_fold_and_sources_do_not_displace_each_other(
    server: ControlServer,
) -> None:
    await hold_back(server)
    path = await the_path(server)
    ci, mail = [(b"x-holon-source", b"ci")], [(b"x-holon-source", b"mail")]
    await server.stranger.send("POST", path, body=b"red", headers=ci)
    await server.stranger.send("POST", path, body=b"letter", headers=mail)
    await server.stranger.send("POST", path, body=b"green", headers=ci)
    last = await server.stranger.send("POST", path, headers=ci)
    assert last.json()["result"]["disposition"] == "coalesced"
    kept = {hint.source: (hint.body, hint.revision) for hint in await hints(server)}
    assert kept == {"ci": ("green", 3), "mail": ("letter", 1)}


@pytest.mark.requirement("triggers:coalesce")
async def test_a_sender_with_a_thousand_names_parks_a_bounded_number_of_hints(
    tmp_path: Path,
) -> None:
    wide = DeliveryRates(burst=1_000, per_minute=1, all_burst=1_000, all_per_minute=1)
    async with control_server(tmp_path, ServerOptions(rates=wide)) as server:
        await hold_back(server)
        path = await the_path(server)
        for number in range(70):
            named = [(b"x-holon-source", f"s{number}".encode())]
            assert (await server.stranger.send("POST", path, headers=named)).status == 200
        assert len(await hints(server)) == 65
        assert (await the_trigger(server))["delivery_count"] == 70


@pytest.mark.requirement("triggers:deduplicated")
@pytest.mark.parametrize(
    "header", [b"idempotency-key", b"webhook-id", b"x-github-delivery"], ids=bytes.decode
)
async def test_a_delivery_repeated_in_a_row_and_in_parallel_counts_once(
    server: ControlServer, header: bytes
) -> None:
    await hold_back(server)
    path = await the_path(server)
    spellings = (b"72D3162E-cc78-11e3-81ab-4c9367dc0958", b'"72d3162e-cc78-11e3-81ab-4c9367dc0958"')
    answers: list[Answer] = []

    async def repeat(spelled: bytes) -> None:
        answers.append(
            await server.stranger.send("POST", path, body=b"x", headers=[(header, spelled)])
        )

    async with anyio.create_task_group() as repeating:
        for number in range(50):
            repeating.start_soon(repeat, spellings[number % 2])
    for number in range(50):
        await repeat(spellings[number % 2])
    said = [answer.json() for answer in answers]
    assert {answer.status for answer in answers} == {200}
    assert [each["result"] for each in said] == [said[0]["result"]] * 100
    assert sum(not each.get("duplicate", False) for each in said) == 1
    (hint,) = await hints(server)
    assert hint.revision == 1
    assert (await the_trigger(server))["delivery_count"] == 1
    delivered = [e for e in await events_of(server.host) if isinstance(e, CallbackDelivered)]
    assert len(delivered) == 1


@pytest.mark.requirement("triggers:another-body-is-a-conflict")
@pytest.mark.parametrize("header", [b"idempotency-key", b"webhook-id"], ids=bytes.decode)
async def test_a_delivery_id_that_comes_with_another_body_is_a_conflict(
    server: ControlServer, header: bytes
) -> None:
    await hold_back(server)
    path, named = await the_path(server), [(header, b"the-very-one")]
    first = await server.stranger.send("POST", path, body=b"one", headers=named)
    for body in (b"two", b"", b"\xff"):
        other = await server.stranger.send("POST", path, body=body, headers=named)
        assert (other.status, other.json()["code"]) == (409, "idempotency_conflict")
        assert other.json()["hint"]
    again = await server.stranger.send("POST", path, body=b"one", headers=named)
    assert again.json() == {**first.json(), "duplicate": True}
    assert [hint.body for hint in await hints(server)] == ["one"]
    assert (await the_trigger(server))["delivery_count"] == 1


BAD_IDS = {"blank": b"a b", "not ASCII": b"\xff", "long": b"x" * 201}


@pytest.mark.parametrize("name", BAD_IDS)
async def test_a_delivery_id_no_sender_could_mean_is_refused(
    server: ControlServer, name: str
) -> None:
    path = await the_path(server)
    answer = await server.stranger.send("POST", path, headers=[(b"webhook-id", BAD_IDS[name])])
    assert (answer.status, answer.json()["code"]) == (400, "bad_delivery_id")
    twice = [(b"webhook-id", b"a"), (b"webhook-id", b"b")]
    assert (await server.stranger.send("POST", path, headers=twice)).status == 400
    assert (await the_trigger(server))["delivery_count"] == 0


@pytest.mark.requirement("triggers:rate")
async def test_a_trigger_is_slowed_down_after_its_burst_and_never_by_guesses(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with control_server(tmp_path, ServerOptions(clock=clock)) as server:
        await hold_back(server)
        path = await the_path(server)
        wrong = f"{path[:-1]}{'A' if path[-1] != 'A' else 'B'}"
        for _ in range(80):
            assert (await server.stranger.send("POST", wrong)).status == 404
        for _ in range(60):
            assert (await server.stranger.send("POST", path)).status == 200
        slowed = await server.stranger.send("POST", path)
        assert (slowed.status, slowed.header(b"retry-after")) == (429, b"2")
        clock.advance(2_000)
        assert (await server.stranger.send("POST", path)).status == 200
        assert (await server.stranger.send("POST", path)).status == 429
        await server.host.control.stop(MAIN)
        before = len(await events_of(server.host))
        for body in (b"", b"{}"):  # told how to resume, and not noted again
            assert (await server.stranger.send("POST", path, body=body)).status == 409
        assert len(await events_of(server.host)) == before


@pytest.mark.requirement("triggers:rate")
async def test_all_triggers_together_are_held_to_a_rate(tmp_path: Path) -> None:
    rates = DeliveryRates(all_burst=3, all_per_minute=60)
    async with control_server(tmp_path, ServerOptions(rates=rates, clock=ManualClock())) as server:
        path = await the_path(server)
        statuses = [(await server.stranger.send("POST", path)).status for _ in range(4)]
        assert statuses == [200, 200, 200, 429]


@pytest.mark.requirement("triggers:url-is-a-secret")
async def test_the_address_is_shown_to_the_operator_alone_and_written_nowhere(
    server: ControlServer,
) -> None:
    path = await the_path(server)
    secret = path.rpartition(".")[2]
    assert secret not in server.registry.redact(f"curl {path}")
    assert (await server.stranger.get(f"/agents/{MAIN}/external-triggers")).status == 401
    await server.stranger.send("POST", path, body=b"x")
    key = (server.home / "trigger_key").read_text().strip()
    assert (server.home / "trigger_key").stat().st_mode & 0o077 == 0
    for file in server.home.rglob("*"):
        if file.is_file() and file.name != "trigger_key":
            held = file.read_bytes()
            assert secret.encode() not in held, file
            assert key.encode() not in held, file


@pytest.mark.requirement("triggers:url-survives")
async def test_an_address_outlives_the_server_and_the_rows_are_sound(tmp_path: Path) -> None:
    async with control_server(tmp_path) as server:
        path = await the_path(server)
        assert (await server.stranger.send("POST", path, body=b"one")).status == 200
    async with control_server(tmp_path) as server:
        assert await the_path(server) == path
        assert (await server.stranger.send("POST", path, body=b"two")).status == 200
        assert (await the_trigger(server))["delivery_count"] == 2
    assert check_database(database_path(tmp_path)).violations == ()


@pytest.mark.requirement("triggers:url-is-a-secret")
async def test_a_command_an_agent_runs_sees_the_trigger_and_not_its_address(
    server: ControlServer,
) -> None:
    peer = Peer(socket_kind=SocketKind.UNIX, address="uid:0", uid=0, pid=1)
    call = Call(
        head=RequestHead(method="GET", path="/", query="", headers=(), peer=peer),
        caller=CallerClass.AGENT_EXEC,
        params={"agent_id": MAIN},
        query=NoQuery(),
        body=b"",
        raw=b"",
    )
    await the_trigger(server)
    (view,) = (await show(server.context, call)).external_triggers
    assert view.trigger_url is None
    assert view.external_trigger_id == (await the_trigger(server))["external_trigger_id"]


async def test_a_trigger_opens_nothing_but_itself(server: ControlServer) -> None:
    path = await the_path(server)
    token = path.rpartition("/")[2].encode()
    bearer = [(b"authorization", b"Bearer " + token)]
    answer = await server.stranger.send("POST", f"/control/agents/{MAIN}/stop", headers=bearer)
    assert answer.status == 401
    assert (await server.stranger.send("GET", path)).status == 405


@pytest.mark.requirement("triggers:looking-makes-none")
async def test_looking_for_a_trigger_makes_none(server: ControlServer) -> None:
    before = await server.host.reads.events.last_log_seq()
    for _ in range(2):
        answer = await server.operator.get(f"/agents/{MAIN}/external-triggers")
        assert len(answer.json()["external_triggers"]) == 1  # the one it was made with
    assert await server.host.reads.events.last_log_seq() == before
    given = await the_trigger(server)
    answer = await server.operator.get(f"/agents/{MAIN}/external-triggers")
    assert answer.json()["external_triggers"] == [given]


async def test_an_agent_nobody_made_has_no_trigger(server: ControlServer) -> None:
    for deed in ("rotate", "revoke"):
        answer = await server.operator.post(f"/control/agents/{NOBODY}/external-trigger/{deed}")
        assert (answer.status, answer.json()["code"]) == (404, "agent_not_found")
    assert (await server.operator.get(f"/agents/{NOBODY}/external-triggers")).status == 404
