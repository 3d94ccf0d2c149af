"""How much of what happens a conversation shows."""

import pytest

from holon.model.events.briefs import OperatorVisibility
from holon.projections.events.presented import (
    Category,
    DisplayMode,
    OperatorEvent,
    UnknownDisplayModeError,
    is_within,
    parse_display_mode,
    shows,
)

TRACE = OperatorVisibility.TRACE


def presented(category: Category, visibility: OperatorVisibility = TRACE) -> OperatorEvent:
    return OperatorEvent(
        visibility=visibility, category=category, title="t", summary="s", source_event_kind="k"
    )


@pytest.mark.requirement("console:display-modes-have-names-and-numbers")
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("3", DisplayMode.INFO),
        ("info", DisplayMode.INFO),
        ("4", DisplayMode.VERBOSE),
        (" Verbose ", DisplayMode.VERBOSE),
        ("5", DisplayMode.DEBUG),
        ("debug", DisplayMode.DEBUG),
    ],
)
def test_a_mode_has_a_name_and_a_number(text: str, mode: DisplayMode) -> None:
    assert parse_display_mode(text) is mode


@pytest.mark.requirement("console:trace-is-not-a-conversation-mode")
@pytest.mark.parametrize("text", ["trace", "6", "2", "", "information", "٣"])
def test_trace_and_everything_else_is_no_mode_of_a_conversation(text: str) -> None:
    with pytest.raises(UnknownDisplayModeError) as refused:
        parse_display_mode(text)
    assert "holon events tail" in (refused.value.hint or "")


INFO, VERBOSE, DEBUG, ALL = DisplayMode


@pytest.mark.requirement("console:display-modes-widen")
@pytest.mark.parametrize(
    ("event", "modes"),
    [
        (presented(Category.BRIEF, OperatorVisibility.ACTION_REQUIRED), {*DisplayMode}),
        (presented(Category.BRIEF, OperatorVisibility.TURN_RESULT), {*DisplayMode}),
        (presented(Category.WORK_ITEM, OperatorVisibility.WORK_DONE), {*DisplayMode}),
        (presented(Category.RUNTIME, OperatorVisibility.TURN_RESULT), {*DisplayMode}),
        (
            presented(Category.ASSISTANT_PROGRESS, OperatorVisibility.PROGRESS),
            {VERBOSE, DEBUG, ALL},
        ),
        (presented(Category.TOOL), {VERBOSE, DEBUG, ALL}),
        (presented(Category.TASK), {VERBOSE, DEBUG, ALL}),
        (presented(Category.WORK_ITEM), {DEBUG, ALL}),
        (presented(Category.WAITING), {DEBUG, ALL}),
        (presented(Category.RUNTIME), {DEBUG, ALL}),
        (presented(Category.TRACE), {ALL}),
        (presented(Category.STATE_SYNC), {ALL}),
    ],
)
def test_each_mode_shows_what_the_one_before_shows_and_more(
    event: OperatorEvent, modes: set[DisplayMode]
) -> None:
    assert {mode for mode in DisplayMode if shows(mode, event)} == modes


def test_a_level_lets_through_what_concerns_the_operator_at_least_as_much() -> None:
    event = presented(Category.BRIEF, OperatorVisibility.WORK_DONE)
    assert [level.value for level in OperatorVisibility if is_within(level, event.visibility)] == [
        "work_done",
        "turn_result",
        "progress",
        "trace",
    ]
