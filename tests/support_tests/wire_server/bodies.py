"""Plain requests to each wire, and a plain client to send them with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any, Final

import httpx2

from holon.model.providers.models import TransportKind
from tests.support.wire_server.server import WireServer
from tests.support_tests.wire_server.clients import KEY, SCHEMA, TRUSTING_NOBODY

RESPONSES: Final = TransportKind.OPENAI_RESPONSES
CODEX: Final = TransportKind.OPENAI_CODEX_RESPONSES
CHAT: Final = TransportKind.OPENAI_CHAT_COMPLETIONS
MESSAGES: Final = TransportKind.ANTHROPIC_MESSAGES
ALL: Final = (RESPONSES, CODEX, CHAT, MESSAGES)

OWN_PATHS: Final = {
    RESPONSES: "/responses",
    CODEX: "/responses",
    CHAT: "/chat/completions",
    MESSAGES: "/v1/messages",
}
_FUNCTION: Final = {"name": "Look", "description": "l", "parameters": SCHEMA, "strict": True}
_BODIES: Final[dict[TransportKind, dict[str, Any]]] = {
    RESPONSES: {
        "model": "gpt-x",
        "input": [{"role": "user", "content": "look"}],
        "tools": [{"type": "function", **_FUNCTION}],
    },
    CODEX: {
        "model": "gpt-codex",
        "instructions": "You are careful.",
        "input": [{"role": "user", "content": "look"}],
        "store": False,
        "stream": True,
    },
    CHAT: {
        "model": "gpt-x",
        "messages": [{"role": "user", "content": "look"}],
        "tools": [{"type": "function", "function": _FUNCTION}],
    },
    MESSAGES: {
        "model": "claude-x",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "look"}],
        "tools": [{"name": "Look", "description": "l", "input_schema": SCHEMA}],
    },
}


def body_for(kind: TransportKind, **changes: object) -> dict[str, Any]:
    """A request this wire takes, with changes; None takes a field away."""
    body = {**deepcopy(_BODIES[kind]), **changes}
    return {name: value for name, value in body.items() if value is not None}


def headers_for(kind: TransportKind, *, key: str | None = KEY) -> dict[str, str]:
    """The headers this wire wants."""
    if kind is MESSAGES:
        credential = {} if key is None else {"x-api-key": key}
        return {"anthropic-version": "2023-06-01", **credential}
    return {} if key is None else {"authorization": f"Bearer {key}"}


@asynccontextmanager
async def plain_client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client that does nothing by itself."""
    async with httpx2.AsyncClient(trust_env=False, timeout=None, verify=TRUSTING_NOBODY) as client:
        yield client


async def post(
    client: httpx2.AsyncClient, server: WireServer, kind: TransportKind, **changes: object
) -> httpx2.Response:
    """Send a request to a wire."""
    url = server.base_url(kind) + OWN_PATHS[kind]
    return await client.post(url, json=body_for(kind, **changes), headers=headers_for(kind))


def events_in(body: bytes) -> list[bytes]:
    """The data of each event in a stream."""
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    return [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
