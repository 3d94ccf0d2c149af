"""When a provider's own items go back in place of rebuilt ones."""

from typing import Any, Final

import pytest

from holon.adapters.providers.openai_codex import OutputReplay, originals_of
from tests.adapters.providers.openai_responses.canned import SEALED, call_item, message_item

REBUILT: Final[list[dict[str, Any]]] = [
    {"type": "message", "role": "assistant", "content": "Hi"},
    {"type": "function_call", "call_id": "c", "name": "ExecCommand", "arguments": '{"cmd":"ls"}'},
]
OUTPUT: Final[list[dict[str, Any]]] = [
    SEALED,
    {**message_item("Hi"), "phase": "commentary"},
    call_item("c", '{"cmd": "ls"}'),
]
ORIGINALS: Final[list[dict[str, Any]]] = [
    SEALED,
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
        "phase": "commentary",
    },
    {"type": "function_call", "call_id": "c", "name": "ExecCommand", "arguments": '{"cmd": "ls"}'},
]


@pytest.mark.requirement("provider-openai:codex-replays-originals")
def test_the_originals_stand_in_for_exactly_the_answer_they_came_with() -> None:
    replay = OutputReplay()
    replay.keep(REBUILT, OUTPUT)
    assert replay.in_place_of(REBUILT) == ORIGINALS
    assert replay.in_place_of(REBUILT[:1]) == REBUILT[:1]
    assert replay.in_place_of([]) == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "reasoning", "id": "rs"}, []),
        ({"type": "web_search_call", "id": "ws"}, [{"type": "web_search_call"}]),
        ({"type": "message", "id": "m", "content": []}, []),
        ({"id": "x", "type": "message", "content": "Hi"}, [{"type": "message", "content": "Hi"}]),
        (SEALED, [SEALED]),
    ],
)
def test_only_what_the_backend_can_read_again_goes_back(
    item: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    assert originals_of([item]) == expected


def test_a_call_told_in_another_form_is_rebuilt_so_that_its_result_matches() -> None:
    replay = OutputReplay()
    told = {"type": "custom_tool_call", "call_id": "c", "name": "ExecCommand", "input": "ls"}
    replay.keep(REBUILT[1:], [told])
    assert replay.in_place_of(REBUILT[1:]) == REBUILT[1:]


def test_what_is_kept_is_bounded_by_count_and_by_bytes() -> None:
    answers = [[{"type": "message", "content": f"{number}"}] for number in range(3)]
    output = [[{"type": "message", "content": f"{number}", "phase": "p"}] for number in range(3)]
    for replay in (OutputReplay(answers_max=2), OutputReplay(bytes_max=100)):
        for rebuilt, told in zip(answers, output, strict=True):
            replay.keep(rebuilt, told)
            replay.keep(rebuilt, told)
        stand_ins = [list(replay.in_place_of(rebuilt)) for rebuilt in answers]
        assert stand_ins == [answers[0], output[1], output[2]]
