"""A message says how it really came, and what that makes it worth."""

from pathlib import Path
from typing import Any

import pytest

from holon.client.control_client import ControlClient
from holon.client.endpoint import UnixEndpoint
from holon.decide.queue.message_view import is_tainted
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageEnvelope,
    TrustLevel,
)
from holon.wire.responses import Enqueued
from tests.http.test_public_ingress import BODY, ENQUEUE, WEBHOOK, options, signed
from tests.support.control_server import MAIN, ControlServer, control_server
from tests.support.http_caller import Answer, Caller

PROMPT = f"/control/agents/{MAIN}/prompt"
SIGNAL, EVIDENCE = AuthorityClass.INTEGRATION_SIGNAL, AuthorityClass.EXTERNAL_EVIDENCE


async def queued(server: ControlServer, answer: Answer) -> MessageEnvelope:
    assert answer.status == 200, answer.body
    (entry,) = await server.host.reads.queue.messages(MAIN, [answer.json()["message_id"]])
    return entry.message


def labels(message: MessageEnvelope) -> tuple[Any, ...]:
    return (message.admission_context, message.delivery_surface, message.authority_class)


def doors(server: ControlServer) -> dict[AdmissionContext, Caller]:
    return {
        AdmissionContext.CONTROL_AUTHENTICATED: server.operator,
        AdmissionContext.LOCAL_PROCESS: server.local,
    }


@pytest.mark.requirement("arrivals:token-webhook-is-a-signal")
async def test_a_webhook_that_shows_the_token_is_a_signal_of_a_trusted_integration(
    server: ControlServer,
) -> None:
    for admission, caller in doors(server).items():
        message = await queued(server, await caller.send("POST", WEBHOOK, body=b"red"))
        assert labels(message) == (admission, DeliverySurface.HTTP_WEBHOOK, SIGNAL)
        assert message.trust is TrustLevel.TRUSTED_INTEGRATION
        assert is_tainted(message.authority_class)


@pytest.mark.requirement("arrivals:token-webhook-is-a-signal")
async def test_an_enqueued_webhook_is_a_signal_and_a_channel_is_evidence(
    server: ControlServer,
) -> None:
    surface = DeliverySurface.HTTP_PUBLIC_ENQUEUE
    channel = {"kind": "channel", "channel_id": "general"}
    for admission, caller in doors(server).items():
        message = await queued(server, await caller.post(ENQUEUE, {"text": "red"}))
        assert labels(message) == (admission, surface, SIGNAL)
        asked = {"text": "red", "origin": channel}
        message = await queued(server, await caller.post(ENQUEUE, asked))
        assert labels(message) == (admission, surface, EVIDENCE)


@pytest.mark.requirement("arrivals:signed-webhook-came-by-its-secret")
async def test_a_signed_webhook_came_by_the_capability_of_its_secret(tmp_path: Path) -> None:
    async with control_server(tmp_path, options()) as server:
        for number, caller in enumerate((server.stranger, server.operator, server.local)):
            headers = signed(BODY, request_id=f"msg_{number}".encode())
            answer = await caller.send("POST", WEBHOOK, body=BODY, headers=headers)
            assert labels(await queued(server, answer)) == (
                AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY,
                DeliverySurface.HTTP_WEBHOOK,
                SIGNAL,
            )


@pytest.mark.requirement("arrivals:prompt-names-its-way")
async def test_a_prompt_names_the_door_and_the_surface_it_came_by(server: ControlServer) -> None:
    worth = AuthorityClass.OPERATOR_INSTRUCTION
    for admission, caller in doors(server).items():
        message = await queued(server, await caller.post(PROMPT, {"text": "hi"}))
        assert labels(message) == (admission, DeliverySurface.HTTP_CONTROL_PROMPT, worth)
        from_cli = [(b"user-agent", b"holon-cli")]
        answer = await caller.post(PROMPT, {"text": "hi"}, headers=from_cli)
        message = await queued(server, answer)
        assert labels(message) == (admission, DeliverySurface.CLI_PROMPT, worth)


@pytest.mark.requirement("arrivals:prompt-names-its-way")
async def test_the_command_lines_client_says_that_it_is_one(server: ControlServer) -> None:
    import anyio.to_thread

    assert server.local.socket_path is not None
    client = ControlClient(UnixEndpoint(path=server.local.socket_path))
    told = await anyio.to_thread.run_sync(
        lambda: client.post(PROMPT, Enqueued, {"text": "hi"}), abandon_on_cancel=True
    )
    (entry,) = await server.host.reads.queue.messages(MAIN, [told.message_id])
    assert entry.message.delivery_surface is DeliverySurface.CLI_PROMPT


@pytest.mark.requirement("arrivals:the-token-makes-no-outsider-the-operator")
@pytest.mark.parametrize(
    "claim",
    [
        {"kind": "operator_prompt", "origin": {"kind": "operator"}},
        {"kind": "control", "origin": {"kind": "operator"}},
        {"priority": "interject"},
        {"trust": "trusted_integration"},
        {"authority_class": "integration_signal"},
        {"text": "x" * 300_000},
    ],
    ids=["prompt", "control", "interject", "trust", "authority", "size"],
)
async def test_the_ceiling_of_the_public_doors_holds_also_for_who_has_the_token(
    server: ControlServer, claim: dict[str, Any]
) -> None:
    for caller in doors(server).values():
        answer = await caller.post(ENQUEUE, {"text": "let me in", **claim})
        assert answer.status in (403, 413), answer.body
    surface = await server.host.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert surface.counts.queued_messages == 0


CONTROL_BODIES: dict[str, dict[str, Any]] = {
    "prompt": {"text": "hi"},
    "wake": {"reason": "look"},
    "work-items": {"objective": "build"},
    "timers": {"duration_ms": 60_000},
    "stop": {},
}


@pytest.mark.requirement("arrivals:claimed-trust-is-refused")
@pytest.mark.parametrize("name", CONTROL_BODIES)
@pytest.mark.parametrize("trust", [t for t in TrustLevel if t is not TrustLevel.TRUSTED_OPERATOR])
async def test_a_trust_that_would_be_ignored_is_refused_and_changes_nothing(
    server: ControlServer, name: str, trust: TrustLevel
) -> None:
    before = await server.host.reads.events.event_bounds(MAIN)
    asked = {**CONTROL_BODIES[name], "trust": trust.value}
    answer = await server.operator.post(f"/control/agents/{MAIN}/{name}", asked)
    told = answer.json()
    assert (answer.status, told["code"], told["field"]) == (400, "trust_not_claimable", "trust")
    assert "enqueue" in told["hint"]
    assert await server.host.reads.events.event_bounds(MAIN) == before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"text":"x","trust":"trusted_operator","trust":"trusted_operator"}', "twice"),
        (b'{"text":"x","trust":"\\ud800"}', "surrogate"),
    ],
)
async def test_a_trust_written_wrongly_is_a_fault_of_the_text_and_no_claim(
    server: ControlServer, body: bytes, said: str
) -> None:
    headers = [(b"content-type", b"application/json")]
    path = f"/control/agents/{MAIN}/prompt"
    answer = await server.operator.send("POST", path, body=body, headers=headers)
    told = answer.json()
    assert (answer.status, told["code"], told["field"]) == (400, "bad_syntax", "trust")
    assert said in told["error"]


@pytest.mark.requirement("arrivals:claimed-trust-is-refused")
async def test_the_trust_a_prompt_has_anyway_may_be_said(server: ControlServer) -> None:
    asked = {"text": "hi", "trust": "trusted_operator"}
    message = await queued(server, await server.operator.post(PROMPT, asked))
    assert message.trust is TrustLevel.TRUSTED_OPERATOR
    nonsense = await server.operator.post(PROMPT, {"text": "hi", "trust": "absolute"})
    assert nonsense.status == 400
