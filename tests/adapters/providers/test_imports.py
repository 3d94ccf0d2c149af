"""What importing the provider plane loads, seen from a process of its own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

WIRES = ("openai_responses", "openai_codex", "openai_chat", "anthropic_messages")
PLANE = "holon.adapters.providers.resolver"
EVERYTHING = (
    PLANE,
    "holon.adapters.providers.http.remote_client",
    *(f"holon.adapters.providers.{wire}.transport" for wire in WIRES),
)


def roots_loaded_by(*modules: str) -> set[str]:
    """The packages in a new process after it has imported some modules."""
    program = "import sys\nfor name in sys.argv[1:]: __import__(name)\nprint(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, check=True, text=True
    )
    return {name.partition(".")[0] for name in ran.stdout.split()}


def test_the_plane_and_every_wire_load_no_vendor_package() -> None:
    loaded = roots_loaded_by(*EVERYTHING)
    assert {"holon", "httpx2"} <= loaded
    assert not loaded & {"openai", "anthropic", "xllamacpp"}


def test_the_check_would_see_a_vendor_package() -> None:
    pytest.importorskip("openai")
    assert "openai" in roots_loaded_by("openai")


def test_the_plane_alone_loads_no_http_client() -> None:
    assert "httpx2" not in roots_loaded_by(PLANE)
