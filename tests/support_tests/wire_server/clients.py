"""The official clients, pointed at a server on this machine, and what they are asked with."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anthropic
import openai

from holon.adapters.providers.scripted.script import Script, ScriptedCall, ScriptedRound
from holon.model.providers.models import TransportKind
from tests.support.wire_server.server import WireServer

# These clients speak plain HTTP; reading the list of authorities takes longer than a test.
TRUSTING_NOBODY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
KEY: Final = "sk-test"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"at": {"type": "string"}},
    "required": ["at"],
    "additionalProperties": False,
}
LOOK: Final = Script(
    rounds=(
        ScriptedRound(
            thinking="The house, then.",
            text="Let me look.",
            calls=(
                ScriptedCall(name="Look", input={"at": "the red house"}),
                ScriptedCall(name="Look", input={"at": "the tree"}, id="call_mine"),
            ),
        ),
        ScriptedRound(text="The house is red, and the tree is green."),
    )
)
HELLO: Final = Script(rounds=(ScriptedRound(text="Hello there, how are you?"),))


@asynccontextmanager
async def openai_client(
    server: WireServer, kind: TransportKind, *, key: str = KEY
) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of one of OpenAI's wires."""
    async with openai.AsyncOpenAI(
        api_key=key,
        base_url=server.base_url(kind),
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=TRUSTING_NOBODY),
    ) as client:
        yield client


@asynccontextmanager
async def anthropic_client(
    server: WireServer, *, key: str = KEY
) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """A client of Anthropic's wire."""
    async with anthropic.AsyncAnthropic(
        api_key=key,
        base_url=server.base_url(TransportKind.ANTHROPIC_MESSAGES),
        max_retries=0,
        http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TRUSTING_NOBODY),
    ) as client:
        yield client
