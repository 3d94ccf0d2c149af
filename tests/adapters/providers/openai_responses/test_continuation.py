"""When a request may be shortened to what the provider does not have."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_responses.request import EncodedMessage, Progress, is_reasoning
from holon.adapters.providers.openai_responses.transport import (
    ContinuationNote,
    ContinuationWindow,
    ContinuationWindows,
    OnlyNewItems,
    Plan,
    WholeRequest,
    plan_request,
    scope_of,
)
from holon.model.providers.prompt_frame import PromptFrame
from tests.adapters.providers.openai_responses.canned import FRAME

SCOPE: Final = ("main", "key")


def raws(*names: str) -> list[msgspec.Raw]:
    """Items by name; `r…` are reasoning."""
    return [
        msgspec.Raw(
            msgspec.json.encode({"type": "reasoning" if name[0] == "r" else "message", "n": name})
        )
        for name in names
    ]


WINDOW: Final = ContinuationWindow(
    shape=b"shape", progress=Progress().behind(raws("a", "b")), response_id="resp_1"
)


def messages_of(*names: str, size: int) -> tuple[EncodedMessage, ...]:
    """A conversation of messages with so many items each."""
    items, progress, messages = raws(*names), Progress(), []
    for start in range(0, len(items), size):
        own = tuple(items[start : start + size])
        progress = progress.behind(own)
        messages.append(EncodedMessage(items=own, progress=progress))
    return tuple(messages)


def planned(
    *names: str,
    window: ContinuationWindow | None = WINDOW,
    scope: tuple[str, str] | None = SCOPE,
    size: int = 1,
) -> Plan:
    messages = messages_of(*names, size=size)
    return plan_request(scope=scope, window=window, shape=b"shape", messages=messages)


@pytest.mark.requirement("provider-openai:continues-strict-extension")
@pytest.mark.parametrize(
    ("ours", "new"),
    [
        (("a", "b", "c"), ("c",)),
        (("a", "b", "c", "d"), ("c", "d")),
        (("a", "r1", "b", "c"), ("c",)),
        (("r0", "a", "b", "r1", "c"), ("c",)),
        (("a", "b", "c", "r2", "d"), ("c", "r2", "d")),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_a_strict_extension_sends_only_what_is_new(
    ours: tuple[str, ...], new: tuple[str, ...], size: int
) -> None:
    plan = planned(*ours, size=size)
    assert plan == OnlyNewItems(previous_response_id="resp_1", items=tuple(raws(*new)))


MISSES: Final[dict[str, tuple[Plan, ContinuationNote]]] = {
    "no scope": (planned("a", "b", "c", scope=None), ContinuationNote.MISSING_SCOPE),
    "no window": (planned("a", "b", "c", window=None), ContinuationNote.INITIAL_REQUEST),
    "no response id": (
        planned("a", "b", "c", window=msgspec.structs.replace(WINDOW, response_id=None)),
        ContinuationNote.MISSING_RESPONSE_ID,
    ),
    "another shape": (
        planned("a", "b", "c", window=msgspec.structs.replace(WINDOW, shape=b"other")),
        ContinuationNote.SHAPE_CHANGED,
    ),
    "nothing new": (planned("a", "b"), ContinuationNote.NOT_APPEND_ONLY),
    "only reasoning is new": (planned("a", "b", "r1"), ContinuationNote.NOT_APPEND_ONLY),
    "shorter": (planned("a"), ContinuationNote.NOT_APPEND_ONLY),
    "an item changed": (planned("a", "x", "c"), ContinuationNote.NOT_APPEND_ONLY),
    "an item inserted": (planned("x", "a", "b", "c"), ContinuationNote.NOT_APPEND_ONLY),
    "compacted": (planned("b", "c", "d"), ContinuationNote.NOT_APPEND_ONLY),
    "changed in a message of many": (
        planned("a", "x", "c", size=9),
        ContinuationNote.NOT_APPEND_ONLY,
    ),
    "nothing at all": (planned(), ContinuationNote.NOT_APPEND_ONLY),
}


@pytest.mark.requirement("provider-openai:falls-back-to-full-request")
@pytest.mark.parametrize("name", MISSES)
def test_anything_else_goes_out_whole_with_its_reason(name: str) -> None:
    plan, why = MISSES[name]
    assert plan == WholeRequest(why=why)


@given(
    known=st.lists(st.sampled_from("abr"), max_size=4),
    ours=st.lists(st.sampled_from("abr"), max_size=6),
    size=st.integers(1, 4),
)
def test_progress_decides_as_comparing_the_items_would(
    known: list[str], ours: list[str], size: int
) -> None:
    window = msgspec.structs.replace(WINDOW, progress=Progress().behind(raws(*known)))
    held, told = ([name for name in names if name != "r"] for names in (known, ours))
    is_extended = len(told) > len(held) and told[: len(held)] == held
    plan = planned(*ours, window=window, size=size)
    assert isinstance(plan, OnlyNewItems) is is_extended
    if isinstance(plan, OnlyNewItems):
        new = [item for item in plan.items if not is_reasoning(item)]
        assert new == raws(*told[len(held) :])
        assert plan.items[0] == new[0]


def test_the_reasons_have_stable_names() -> None:
    assert {note.value for note in ContinuationNote} == {
        "hit",
        "missing_continuation_scope",
        "not_applicable_initial_request",
        "request_shape_changed",
        "conversation_not_strict_append_only",
        "missing_response_id",
        "previous_response_refused",
    }


def test_the_scope_is_the_agent_and_its_cache_key() -> None:
    assert scope_of(FRAME) == ("main", "main:ctx:0011")
    assert scope_of(PromptFrame(system_prompt="x")) is None


def test_a_window_can_be_taken_once() -> None:
    windows = ContinuationWindows()
    windows.keep(SCOPE, WINDOW)
    assert windows.take(("main", "other")) is None
    assert windows.take(SCOPE) is WINDOW
    assert windows.take(SCOPE) is None
    windows.keep(None, WINDOW)
    assert windows.take(None) is None


def test_windows_are_bounded_and_the_oldest_goes_first() -> None:
    windows = ContinuationWindows(windows_max=2)
    for name in ("one", "two", "three"):
        windows.keep((name, "key"), WINDOW)
    kept = [windows.take((name, "key")) for name in ("one", "two", "three")]
    assert kept == [None, WINDOW, WINDOW]
