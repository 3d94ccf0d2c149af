"""The README and the HTTP reference state what a command of an agent can do."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.requirement("own-commands:told-plainly")
@pytest.mark.parametrize("page", ["README.md", "docs/reference/http.md"])
def test_a_page_says_there_is_no_sandbox_and_that_the_socket_is_no_boundary(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for words in ("o sandbox", "not a security boundary", "environment of the service", "token"):
        assert words in text, (page, words)
