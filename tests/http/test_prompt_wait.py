"""Waiting for the answer to a prompt, over a real server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import h11
import msgspec
import pytest

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.control_token import FixedToken
from holon.adapters.system.listening_sockets import bind_tcp
from holon.http.routes import agent_control
from holon.model.budgets import Budget, BudgetPolicy
from holon.model.errors import StoreBusyError
from holon.model.events.event import MessageAdmitted
from holon.model.limits import HOUR_MS, PROMPT_WAIT_MS_MAX, PROMPT_WAITS_COUNT_MAX
from holon.model.providers.attempts import UsageLimitedError
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import ModelAnswer
from holon.ports.providers import OnProgress
from holon.serve.compose import HostOptions
from holon.serve.control_server import serve_control_plane
from tests.http.serving import PATIENCE_S, events_of, make_agent
from tests.support.control_server import MAIN, TOKEN, ControlServer, ServerOptions, control_server
from tests.support.http_caller import Caller
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

PROMPT = f"/control/agents/{MAIN}/prompt"
KEY = ((b"idempotency-key", b"once"),)
LONG_MS = PROMPT_WAIT_MS_MAX
SCRIPT = Script(
    rules=(
        ScriptedRule(when="fail", rounds=(ScriptedRound(fail="auth_rejected"),)),
        ScriptedRule(
            when="two rounds",
            rounds=(
                ScriptedRound(calls=(ScriptedCall(name="AgentGet", input={}),)),
                ScriptedRound(text="Both done."),
            ),
        ),
        ScriptedRule(rounds=(ScriptedRound(text="Hello yourself."),)),
    )
)


class Gate:
    """A model that answers nothing before it is opened, and nothing again once it is used up."""

    def __init__(self) -> None:
        self._model = ScriptedProvider(SCRIPT, SystemClock())
        self.opened = anyio.Event()
        self.asked = anyio.Event()
        self.is_used_up = False

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Answer once the gate is open."""
        self.asked.set()
        await self.opened.wait()
        if self.is_used_up:
            raise UsageLimitedError("the allowance is used up", retry_after_ms=HOUR_MS)
        return await self._model.answer(request, on_progress)


@asynccontextmanager
async def serving(
    home: Path, gate: Gate, budgets: BudgetPolicy | None = None
) -> AsyncIterator[Any]:
    host = HostOptions(budgets=budgets or BudgetPolicy())
    options = ServerOptions(models=SingleModel(gate), host=host)
    async with control_server(home, options) as server:
        yield server


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def server(tmp_path: Path, gate: Gate) -> AsyncIterator[ControlServer]:
    """A server whose model waits for the gate."""
    async with serving(tmp_path / "home", gate) as running:
        yield running


async def asked(caller: Caller, text: str = "hello", /, **body: Any) -> Any:
    answer = await caller.post(PROMPT, {"text": text, **body}, headers=KEY)
    assert answer.status == 200, answer.body
    return answer.json()


def texts(answer: Any) -> list[str]:
    return [each["text"] for each in answer["briefs"]]


async def test_the_answer_comes_with_the_end_of_the_turn(server: ControlServer, gate: Gate) -> None:
    gate.opened.set()
    answer = await asked(server.operator, wait_ms=LONG_MS)
    assert (answer["ok"], answer["answered"], answer["ended"]) == (True, True, "processed")
    assert texts(answer) == ["Hello yourself."]
    assert answer["briefs"][0]["related_message_id"] == answer["message_id"]
    assert answer["closure"]["outcome"] == "completed"
    assert not {"wait_end", "held_until", "held_by"} & set(answer)


async def test_without_a_wait_the_receipt_is_all(server: ControlServer, gate: Gate) -> None:
    gate.opened.set()
    assert set(await asked(server.operator)) == {"ok", "agent_id", "message_id", "duplicate"}


async def test_a_wait_may_be_repeated_under_the_same_key(server: ControlServer, gate: Gate) -> None:
    first = await asked(server.operator, wait_ms=1)
    assert (first["answered"], first["wait_end"]) == (False, "time_is_up")
    assert not {"ended", "briefs"} & set(first)
    gate.opened.set()
    again = await asked(server.local, wait_ms=LONG_MS)
    assert (again["message_id"], again["duplicate"]) == (first["message_id"], True)
    assert (again["answered"], texts(again)) == (True, ["Hello yourself."])
    late = await asked(server.operator, wait_ms=LONG_MS)
    assert texts(late) == ["Hello yourself."], "ended before it was asked for"
    admitted = [each for each in await events_of(server.host) if isinstance(each, MessageAdmitted)]
    assert len(admitted) == 1


async def test_a_turn_that_fails_is_an_end(server: ControlServer, gate: Gate) -> None:
    gate.opened.set()
    answer = await asked(server.operator, "fail", wait_ms=LONG_MS)
    assert (answer["answered"], answer["ended"]) == (True, "processed")
    assert [each["kind"] for each in answer["briefs"]] == ["failure"]
    assert answer["closure"]["outcome"] == "failed"


async def test_an_aborted_turn_is_an_end(server: ControlServer, gate: Gate) -> None:
    async with anyio.create_task_group() as waiting:

        async def wait() -> None:
            answer = await asked(server.operator, wait_ms=LONG_MS)
            assert (answer["answered"], answer["ended"]) == (True, "aborted")

        waiting.start_soon(wait)
        with anyio.fail_after(PATIENCE_S):
            await gate.asked.wait()
            await waiting_count(server, 1)
        await server.host.control.abort_run(MAIN)


async def test_an_interjection_is_answered_by_the_turn_it_entered(
    server: ControlServer, gate: Gate
) -> None:
    first = await server.operator.post(PROMPT, {"text": "two rounds"})
    with anyio.fail_after(PATIENCE_S):
        await gate.asked.wait()
    said: dict[str, Any] = {"text": "and this", "interject": True}
    async with anyio.create_task_group() as waiting:

        async def wait() -> None:
            answer = await asked(server.operator, "and this", interject=True, wait_ms=LONG_MS)
            assert answer["message_id"] != first.json()["message_id"]
            assert (answer["answered"], answer["ended"]) == (True, "processed")
            assert texts(answer) == ["Both done."]

        waiting.start_soon(wait)
        with anyio.fail_after(PATIENCE_S):
            await waiting_count(server, 1)
        gate.opened.set()
    again = await server.operator.post(PROMPT, said | {"wait_ms": 1}, headers=KEY)
    assert texts(again.json()) == ["Both done."]


async def test_a_client_that_goes_away_ends_its_wait(server: ControlServer, gate: Gate) -> None:
    with anyio.move_on_after(PATIENCE_S) as given_up:
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(asked, server.operator)
            waiting.start_soon(
                lambda: server.operator.post(PROMPT, {"text": "x", "wait_ms": LONG_MS})
            )
            await waiting_count(server, 1)
            followers = server.host.events.follower_count
            waiting.cancel_scope.cancel()
        await waiting_count(server, 0)
    assert not given_up.cancelled_caught
    assert server.host.events.follower_count == followers - 1


async def test_no_more_than_a_bounded_number_waits(server: ControlServer) -> None:
    for _ in range(PROMPT_WAITS_COUNT_MAX):
        server.context.prompt_waits.acquire_nowait()
    answer = await asked(server.operator, wait_ms=LONG_MS)
    assert (answer["answered"], answer["wait_end"]) == (False, "too_many_waits")
    assert answer["message_id"]
    server.context.prompt_waits.release()
    assert (await asked(server.operator, wait_ms=1))["wait_end"] == "time_is_up"


async def test_a_used_up_budget_is_told_with_its_end(tmp_path: Path, gate: Gate) -> None:
    gate.opened.set()
    budgets = BudgetPolicy(agent=Budget(turns_per_hour=1))
    async with serving(tmp_path / "home", gate, budgets) as server:
        await server.operator.post(PROMPT, {"text": "the first", "wait_ms": LONG_MS})
        answer = await asked(server.operator, wait_ms=LONG_MS)
        assert (answer["answered"], answer["wait_end"]) == (False, "held")
        assert answer["held_by"] == "budget_used_up"
        again = await asked(server.operator, wait_ms=1)
        assert (again["wait_end"], again["held_until"]) == ("time_is_up", answer["held_until"])


async def test_a_message_that_is_put_off_is_told_with_its_moment(
    server: ControlServer, gate: Gate
) -> None:
    gate.is_used_up = True
    gate.opened.set()
    answer = await asked(server.operator, wait_ms=LONG_MS)
    assert (answer["answered"], answer["wait_end"]) == (False, "held")
    assert answer["held_by"] == "provider_deferred"
    assert answer["closure"]["waiting_reason"] == "awaiting_timer"


@pytest.mark.parametrize("wait_ms", [0, -1, PROMPT_WAIT_MS_MAX + 1, "5", True])
async def test_a_wait_out_of_bounds_admits_nothing(server: ControlServer, wait_ms: Any) -> None:
    answer = await server.operator.post(PROMPT, {"text": "hello", "wait_ms": wait_ms})
    assert (answer.status, answer.json()["field"]) == (400, "wait_ms")
    assert not [each for each in await events_of(server.host) if isinstance(each, MessageAdmitted)]


async def test_what_a_reader_is_not_shown_is_not_waited_for(server: ControlServer) -> None:
    hidden = await make_agent(server, "hidden", private=True)
    path = f"/control/agents/{hidden}/prompt"
    answer = await server.operator.post(path, {"text": "hello", "wait_ms": LONG_MS})
    assert (answer.status, answer.json()["code"]) == (404, "agent_not_found")
    told = await events_of(server.host, hidden)
    assert not [each for each in told if isinstance(each, MessageAdmitted)]


async def test_an_error_after_the_wait_is_a_refusal(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_args: Any, **_options: Any) -> Any:
        raise StoreBusyError("the store is busy")

    monkeypatch.setattr(agent_control, "awaited", busy)
    answer = await server.operator.post(PROMPT, {"text": "hello", "wait_ms": LONG_MS})
    assert (answer.status, answer.json()["ok"]) == (503, False)
    assert server.context.traffic.refusals[503] == 1


async def test_the_end_of_the_service_ends_a_wait_with_what_is_known(server: ControlServer) -> None:
    ending = anyio.Event()
    with bind_tcp("127.0.0.1", 0) as bound, anyio.fail_after(PATIENCE_S):
        port = bound.getsockname()[1]
        names = frozenset({f"127.0.0.1:{port}".encode()})
        bearer = ((b"authorization", f"Bearer {TOKEN}".encode()),)
        caller = Caller(port=port, standing=bearer)
        async with anyio.create_task_group() as waiting:

            async def wait() -> None:
                answer = await caller.post(PROMPT, {"text": "hello", "wait_ms": LONG_MS})
                assert answer.header(b"connection") == b"close"
                told = answer.json()
                assert (told["answered"], told["wait_end"]) == (False, "runtime_ends")

            waiting.start_soon(wait)
            async with anyio.create_task_group() as answering:

                async def serve() -> None:
                    await serve_control_plane(
                        server.context,
                        (bound,),
                        token=FixedToken(TOKEN),
                        names=names,
                        ending=ending,
                    )

                answering.start_soon(serve)
                await waiting_count(server, 1)
                ending.set()


async def test_what_is_sent_during_a_wait_ends_nothing(server: ControlServer, gate: Gate) -> None:
    """A client may send its next request early; the connection closes after the answer."""
    body = msgspec.json.encode({"text": "hello", "wait_ms": LONG_MS})
    wire = h11.Connection(h11.CLIENT)
    lines = [("host", "localhost"), ("content-type", "application/json")]
    head = h11.Request(
        method="POST", target=PROMPT, headers=[*lines, ("content-length", str(len(body)))]
    )
    parts = (head, h11.Data(data=body), h11.EndOfMessage())
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_unix(server.local.socket_path or "") as stream:
            await stream.send(b"".join(wire.send(part) or b"" for part in parts))
            await waiting_count(server, 1)
            await stream.send(b"GET /handshake HTTP/1.1\r\nhost: localhost\r\n\r\n")
            gate.opened.set()
            came = bytearray()
            async for part in stream:
                came += part
    assert came.count(b"HTTP/1.1 ") == 1
    assert b"Hello yourself." in came


async def waiting_count(server: ControlServer, count: int) -> None:
    """Return once so many requests wait."""
    while server.context.prompt_waits.value != PROMPT_WAITS_COUNT_MAX - count:
        await anyio.lowlevel.checkpoint()
