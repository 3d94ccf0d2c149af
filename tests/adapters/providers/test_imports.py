"""The modules that importing the provider resolver loads, in a separate process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

TRANSPORTS = (
    "openai_responses.transport",
    "openai_codex",
    "openai_chat.transport",
    "anthropic_messages.transport",
)
RESOLVER = "holon.adapters.providers.resolver"
EVERYTHING = (
    RESOLVER,
    "holon.adapters.providers.http.remote_client",
    *(f"holon.adapters.providers.{name}" for name in TRANSPORTS),
)


def roots_loaded_by(*modules: str) -> set[str]:
    """The packages in a new process after it has imported some modules."""
    program = "import sys\nfor name in sys.argv[1:]: __import__(name)\nprint(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, check=True, text=True
    )
    return {name.partition(".")[0] for name in ran.stdout.split()}


def test_the_resolver_and_every_transport_load_no_vendor_package() -> None:
    loaded = roots_loaded_by(*EVERYTHING)
    assert {"holon", "httpx2"} <= loaded
    assert not loaded & {"openai", "anthropic", "xllamacpp"}


def test_the_check_would_see_a_vendor_package() -> None:
    pytest.importorskip("openai")
    assert "openai" in roots_loaded_by("openai")


def test_the_resolver_alone_loads_no_http_client() -> None:
    assert "httpx2" not in roots_loaded_by(RESOLVER)
