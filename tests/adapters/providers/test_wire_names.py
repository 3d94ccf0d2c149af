"""Names nobody agreed on, made fit for any wire."""

import re

import pytest

from holon.adapters.providers.wire_request import plain_name


@pytest.mark.parametrize("name", ["ExecCommand", "a-b_c", "x" * 64])
def test_a_fine_name_stays_as_it_is(name: str) -> None:
    assert plain_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "multi_tool_use.parallel", "x" * 65, "ü", "a\nb", "x" * 9_999]
)
def test_any_other_name_has_a_stand_in(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", plain_name(name))
    assert plain_name(name) == plain_name(name)


def test_two_names_never_share_a_stand_in() -> None:
    names = ["a.b", "a b", "a_b", "x" * 65, "x" * 66]
    assert len({plain_name(name) for name in names}) == len(names)
