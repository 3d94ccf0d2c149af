"""Lines of a log as a person reads them."""

import json

import pytest

from holon.cli.service.daemon_logs import shown_lines

LINE = {
    "at": "2026-11-16T08:30:15.123456Z",
    "level": "error",
    "event": "turn_crashed",
    "message": "a turn failed",
    "agent_id": "main",
    "logger": "holon",
    "pid": 5,
    "trace": "Traceback:\n  in f\nValueError: x",
}


@pytest.mark.requirement("journal:people-read-text-and-scripts-json")
def test_a_line_is_shown_as_time_level_and_text() -> None:
    assert list(shown_lines(json.dumps(LINE))) == [
        "2026-11-16 08:30:15 error   turn_crashed: a turn failed (agent_id=main)",
        "    Traceback:",
        "      in f",
        "    ValueError: x",
    ]


@pytest.mark.parametrize(
    "line",
    ["plain words", "{", "[1]", '{"at": 5}', '{"level": "info"}', "[" * 5_000, "null", ""],
)
def test_a_line_in_another_form_is_shown_as_it_is(line: str) -> None:
    assert list(shown_lines(line)) == [line]


def test_nothing_a_line_holds_moves_a_terminal() -> None:
    evil = "a\x1b[2J\x1b]0;t\x07\u202eb\nc"
    shown = list(shown_lines(json.dumps(dict.fromkeys(LINE, evil))))
    assert not {"\x1b", "\x07", "\u202e"} & set("".join(shown))
    assert "\n" not in shown[0]
