"""The guide to signed webhooks says what the server does: its example is run as it stands."""

import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from anyio import run_process

from holon.model.limits import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    KIB,
    MINUTE_MS,
    PUBLIC_BODY_BYTES_MAX,
    WEBHOOK_CLOCK_SKEW_MS_MAX,
)
from holon.model.queue import AuthorityClass, WebhookOrigin
from holon.model.values import MessageId
from tests.support.control_server import MAIN, ServerOptions, control_server

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "receive-signed-webhooks.md"
SECRET = "a secret both sides know"
TOOLS = ("bash", "openssl", "curl")


def example() -> str:
    """The one block of the guide that is meant to be run."""
    (block,) = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.S)
    return str(block)


async def answer_to(url: str, script: str) -> dict[str, object]:
    environ = {**os.environ, "HOLON_URL": url, "FORGE_WEBHOOK_SECRET": SECRET}
    done = await run_process(["bash", "-euo", "pipefail", "-c", script], env=environ)
    return msgspec.json.decode(done.stdout, type=dict[str, object])


@pytest.mark.requirement("ingress:signed-webhook")
@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason="the example needs openssl and curl")
async def test_the_example_of_the_guide_is_taken_as_a_signal(tmp_path: Path) -> None:
    options = ServerOptions(webhook_secrets={"forge": SECRET.encode()})
    async with control_server(tmp_path, options) as server:
        url = server.context.facts.base_url
        told = await answer_to(url, example())
        assert told["ok"] is True, told
        (kept,) = await server.host.reads.queue.messages(MAIN, [MessageId(str(told["message_id"]))])
        assert kept.message.origin == WebhookOrigin(source="forge")
        assert kept.message.authority_class is AuthorityClass.INTEGRATION_SIGNAL
        forged = await answer_to(url, example().replace('--data-binary "$body"', "-d forged"))
        assert forged["code"] == "bad_signature"


def test_the_bounds_the_guide_names_are_those_that_hold() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert f"up to {PUBLIC_BODY_BYTES_MAX // KIB} KiB" in text
    assert f"up to {IDEMPOTENCY_KEY_CHARS_MAX} printable characters" in text
    assert f"at most {WEBHOOK_CLOCK_SKEW_MS_MAX // MINUTE_MS} minutes" in text
