"""Stored records that are read again and again."""

import msgspec
import pytest

from holon.adapters.sqlite.database.row_codec import (
    BRIEFS,
    RECALLED_CHARS_MAX,
    RECALLED_COUNT_MAX,
    RecallingDecoder,
)
from holon.model.errors import StoreBrokenError
from holon.model.events.briefs import BriefRecord
from holon.wire.codec import encode
from tests.support.builders import a_brief


def a_brief_of(number: int, text: str) -> BriefRecord:
    """A brief that says something."""
    return msgspec.structs.replace(a_brief(f"brief_{number}"), text=text)


def stored(number: int = 0, *, text: str = "Done.") -> str:
    """A brief as it is stored, always a new text."""
    return encode(a_brief_of(number, text)).decode()


def test_the_same_short_text_gives_the_very_same_record() -> None:
    first = BRIEFS.decode(stored())
    assert first == a_brief_of(0, "Done.")
    assert BRIEFS.decode(stored()) is first
    assert BRIEFS.decode(stored(1)) != first


def test_a_long_text_is_read_each_time() -> None:
    text = stored(text="x" * RECALLED_CHARS_MAX)
    assert BRIEFS.decode(text) == BRIEFS.decode(text)
    assert BRIEFS.decode(text) is not BRIEFS.decode(text)


def test_only_so_many_are_kept() -> None:
    briefs = RecallingDecoder[BriefRecord](BriefRecord)
    first = briefs.decode(stored())
    for number in range(1, RECALLED_COUNT_MAX + 1):
        briefs.decode(stored(number))
    assert briefs.decode(stored()) is not first


def test_damage_is_damage_each_time() -> None:
    for _ in range(2):
        with pytest.raises(StoreBrokenError):
            BRIEFS.decode('{"id": 1')
