"""Ids at the door: what may name an agent or a record."""

import pytest

from holon.model.errors import BadIdError
from holon.model.limits import ID_CHARS_MAX
from holon.model.values import parse_agent_id, parse_record_id

BAD_ANYWHERE = [
    pytest.param("", id="empty"),
    pytest.param("../x", id="path"),
    pytest.param("a/b", id="slash"),
    pytest.param("..", id="dots"),
    pytest.param("x" * 10_000, id="ten thousand characters"),
    pytest.param("x" * (ID_CHARS_MAX + 1), id="one too long"),
    pytest.param("Main", id="upper case"),
    pytest.param("naïve", id="accent"),
    pytest.param("агент", id="other script"),
    pytest.param("٣", id="digit of another script"),
    pytest.param("a b", id="space"),
    pytest.param("main\n", id="newline at the end"),
    pytest.param("a\x00b", id="nul"),
    pytest.param("-rf", id="option"),
    pytest.param("_a", id="leading underscore"),
    pytest.param("\ud800", id="lone surrogate"),
]


@pytest.mark.requirement("wire:bad-ids-are-refused")
@pytest.mark.parametrize("text", BAD_ANYWHERE)
def test_a_bad_id_is_refused_with_a_sentence_and_a_hint(text: str) -> None:
    for parse in (parse_agent_id, lambda t: parse_record_id(t, what="agent id")):
        with pytest.raises(BadIdError, match="agent id") as caught:
            parse(text)
        assert caught.value.hint
        assert len(caught.value.message) < 2 * ID_CHARS_MAX + 100


@pytest.mark.parametrize("text", ["main", "a", "0", "agent-2", "my_agent", "x" * ID_CHARS_MAX])
def test_a_plain_name_is_an_agent_id(text: str) -> None:
    assert parse_agent_id(text) == text


@pytest.mark.parametrize("text", ["turn_1.2.0", "fire:timer_1", "msg_01h"])
def test_record_ids_may_be_composed_but_agent_ids_may_not(text: str) -> None:
    assert parse_record_id(text, what="id") == text
    if set(text) & set(".:"):
        with pytest.raises(BadIdError):
            parse_agent_id(text)
