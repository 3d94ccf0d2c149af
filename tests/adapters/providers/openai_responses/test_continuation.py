"""When a request may be shortened to what the provider does not have."""

from typing import Final

import msgspec
import pytest

from holon.adapters.providers.openai_responses.continuation import (
    ContinuationNote,
    ContinuationWindows,
    OnlyNewItems,
    Plan,
    WholeRequest,
    Window,
    plan_request,
    scope_of,
)
from holon.adapters.providers.openai_responses.conversation_memo import EncodedConversation
from holon.model.prompt_frame import PromptFrame
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


WINDOW: Final = Window(shape=b"shape", items=raws("a", "b"), response_id="resp_1")


def planned(
    *names: str, window: Window | None = WINDOW, scope: tuple[str, str] | None = SCOPE
) -> Plan:
    conversation = EncodedConversation(
        messages=(),
        items=raws(*names),
        compared=raws(*(name for name in names if name[0] != "r")),
        ends=[],
    )
    return plan_request(scope=scope, window=window, shape=b"shape", conversation=conversation)


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
def test_a_strict_extension_sends_only_what_is_new(
    ours: tuple[str, ...], new: tuple[str, ...]
) -> None:
    assert planned(*ours) == OnlyNewItems(previous_response_id="resp_1", items=raws(*new))


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
}


@pytest.mark.requirement("provider-openai:falls-back-to-full-request")
@pytest.mark.parametrize("name", MISSES)
def test_anything_else_goes_out_whole_with_its_reason(name: str) -> None:
    plan, why = MISSES[name]
    assert plan == WholeRequest(why=why)


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
