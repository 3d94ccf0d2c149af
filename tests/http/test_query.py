"""Query strings to values, strictly."""

from typing import Literal

import msgspec
import pytest

from holon.http.query import BadQueryError, read_query


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page of something takes."""

    after_seq: int | None = None
    limit: int = 10
    order: Literal["asc", "desc"] = "asc"
    block: bool = False
    label: str | None = None


def test_what_is_not_said_stays_at_its_default() -> None:
    assert read_query("", Page) == Page()


def test_every_kind_of_value_is_read() -> None:
    read = read_query("after_seq=7&limit=3&order=desc&block=true&label=a%20b+c", Page)
    assert read == Page(after_seq=7, limit=3, order="desc", block=True, label="a b c")


@pytest.mark.parametrize(
    "text",
    [
        "after_seq=1_0",
        "after_seq=١٢",
        "after_seq=%D9%A1%D9%A2",
        "after_seq=-1",
        "after_seq=+1",
        "after_seq=1e3",
        "after_seq=1.0",
        "after_seq= 1",
        "after_seq=",
        "after_seq=18446744073709551616",
        "after_seq=1&after_seq=1",
        "limit",
        "order=up",
        "block=1",
        "unknown=1",
        "=1",
    ],
)
def test_what_is_only_nearly_right_is_refused(text: str) -> None:
    with pytest.raises(BadQueryError):
        read_query(text, Page)


FAULTS = {
    "unknown=1": ("unknown", "after_seq, block, label, limit, order"),
    "limit=1&limit=1": ("limit", "once"),
    "limit=x": ("limit", "digits"),
    "block=1": ("block", "true, false"),
    "order=up": ("order", "asc, desc"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_names_the_parameter_and_what_it_takes(text: str) -> None:
    field, hint = FAULTS[text]
    with pytest.raises(BadQueryError) as told:
        read_query(text, Page)
    assert told.value.field == field
    assert hint in (told.value.hint or "")
