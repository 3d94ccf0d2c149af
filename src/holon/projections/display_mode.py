"""Display modes: how much of what happens a main conversation shows.

Owns:  the named modes with their numbers, and which presentations each of them shows.
Rule 1: a mode is a choice of the reader. It says nothing about who may replay an event.
Rule 2: `trace` is for inspecting raw events; it is no mode of the main conversation.
Rule 3: state-sync events are in no conversation.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from holon.model.brief import OperatorVisibility
from holon.model.errors import BadInputError
from holon.model.text_size import one_line
from holon.projections.operator_event import OperatorEvent
from holon.projections.operator_event_rows import Category


class DisplayMode(StrEnum):
    """How much to show, from results alone to everything."""

    INFO = "info"
    VERBOSE = "verbose"
    DEBUG = "debug"
    TRACE = "trace"


class UnknownDisplayModeError(BadInputError):
    """There is no such display mode for a conversation."""

    code = "unknown_display_mode"
    hint = "choose info (3), verbose (4) or debug (5); raw events: holon events tail"


NUMBERS: Final[Mapping[str, DisplayMode]] = MappingProxyType(
    {"3": DisplayMode.INFO, "4": DisplayMode.VERBOSE, "5": DisplayMode.DEBUG}
)
_CONVERSATION: Final = (DisplayMode.INFO, DisplayMode.VERBOSE, DisplayMode.DEBUG)
_RESULT_LEVEL: Final = OperatorVisibility.TURN_RESULT.level

# What a mode shows besides results. Tool events stay trace-level; these are the curated rows.
_ACTIVITY: Final = frozenset({Category.ASSISTANT_PROGRESS, Category.TOOL, Category.TASK})
_DETAILS: Final = _ACTIVITY | {
    Category.MESSAGE,
    Category.WORK_ITEM,
    Category.WAITING,
    Category.WORKSPACE,
    Category.RUNTIME,
}
_CATEGORIES: Final[Mapping[DisplayMode, frozenset[Category]]] = MappingProxyType(
    {
        DisplayMode.INFO: frozenset(),
        DisplayMode.VERBOSE: _ACTIVITY,
        DisplayMode.DEBUG: _DETAILS,
        DisplayMode.TRACE: frozenset(Category),
    }
)


def parse_display_mode(text: str) -> DisplayMode:
    """Return the conversation mode a name or number stands for, or raise."""
    asked = text.strip().lower()
    if asked in NUMBERS:
        return NUMBERS[asked]
    for mode in _CONVERSATION:
        if mode.value == asked:
            return mode
    raise UnknownDisplayModeError(f"{one_line(text, chars_max=40)!r} is no display mode")


def shows(mode: DisplayMode, presented: OperatorEvent) -> bool:
    """Whether a mode shows an event."""
    if presented.category in _CATEGORIES[mode]:
        return True
    is_synced = presented.category is Category.STATE_SYNC
    return presented.visibility.level <= _RESULT_LEVEL and not is_synced


def is_within(level: OperatorVisibility, visibility: OperatorVisibility) -> bool:
    """Whether an event concerns the operator at least as much as `level`: the filter by level."""
    return visibility.level <= level.level
