"""What the flags and variables about access amount to."""

import pytest

from holon.cli.access_options import AccessFlags, serve_request
from holon.config.environment_names import CALLBACK_BASE_URL
from holon.serve.effective_config import ServeRequest

FLAGS = AccessFlags(
    access="local",
    listen=None,
    host=None,
    port=None,
    advertise="https://holon.example.org",
    token=None,
    token_file=None,
    workspace_root=None,
    agent="main",
    log_level=None,
)


def asked() -> ServeRequest:
    return serve_request(FLAGS)


@pytest.mark.requirement("triggers:callback-base")
@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("", None), ("https://hooks.example.org", "https://hooks.example.org")],
)
def test_the_base_of_trigger_urls_is_a_variable_beside_the_advertised_address(
    monkeypatch: pytest.MonkeyPatch, value: str | None, expected: str | None
) -> None:
    monkeypatch.delenv(CALLBACK_BASE_URL, raising=False)
    if value is not None:
        monkeypatch.setenv(CALLBACK_BASE_URL, value)
    access = asked().access
    assert (access.callback_base, access.advertise) == (expected, "https://holon.example.org")
