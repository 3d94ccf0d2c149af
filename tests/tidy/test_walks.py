"""docs/architecture.md tells the truth: its walks are run and traced, its links are followed."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support import walks
from tests.support.walks import Called, Walk

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/architecture.md"
FLOWS: Final[dict[str, Walk]] = {
    "From a prompt to a brief": walks.prompt_walk,
    "From a command to its result": walks.command_walk,
    "From a trigger to a turn": walks.trigger_walk,
}
_SECTION: Final = re.compile(r"^###? (.+)$", re.MULTILINE)
_STEP: Final = re.compile(
    r"^\| (\d+) \| `([\w.]+)` \| \[([\w/.]+)\]\(\.\./src/holon/(\S+)\) \| .+ \|$"
)
_LINK: Final = re.compile(r"\]\(([^)#]+)")


def sections(page: str) -> dict[str, str]:
    """The text under each heading of a page."""
    parts = _SECTION.split(page)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def steps(section: str) -> list[Called]:
    """The functions a section lists, in its order. Every row of its table must be readable."""
    rows = [line for line in section.splitlines() if re.match(r"\| \d", line)]
    read = [_STEP.match(row) for row in rows]
    assert all(read), [row for row, match in zip(rows, read, strict=True) if match is None]
    found = [match for match in read if match is not None]
    assert [int(match[1]) for match in found] == list(range(1, len(found) + 1))
    assert all(match[3] == match[4] for match in found), "a link is labelled with its file"
    return [Called(match[4], match[2]) for match in found]


def first_missing(listed: Sequence[Called], calls: Sequence[Called]) -> Called | None:
    """The first function of a list that was not called after the one before it."""
    rest = iter(calls)
    return next((step for step in listed if step not in rest), None)


def test_a_list_in_the_wrong_order_is_seen() -> None:
    a, b, c = (Called("x.py", name) for name in "abc")
    assert first_missing([a, b, a], [a, c, b, c, a]) is None
    assert first_missing([b, a, b], [a, c, b, c, a]) == b
    assert first_missing([a, c], [a, b]) == c


@pytest.mark.parametrize("name", FLOWS)
async def test_the_functions_of_a_walk_are_called_in_that_order(name: str, tmp_path: Path) -> None:
    listed = steps(sections(PAGE.read_text(encoding="utf-8"))[name])
    assert len(listed) > 10
    calls = await walks.record(FLOWS[name], tmp_path)
    assert first_missing(listed, calls) is None


def test_the_page_describes_no_other_walk() -> None:
    page = sections(PAGE.read_text(encoding="utf-8"))
    assert [name for name, text in page.items() if steps(text)] == list(FLOWS)


def test_every_topic_is_found_on_several_floors() -> None:
    table = sections(PAGE.read_text(encoding="utf-8"))["Where to look"]
    rows = [line for line in table.splitlines() if "](" in line]
    assert len(rows) == 10
    assert [row for row in rows if len(_LINK.findall(row)) < 3] == []


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = _LINK.findall(PAGE.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
