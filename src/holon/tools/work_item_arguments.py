"""Argument parts the work-item tools share.

Owns:  how a work item is named and how a checklist is written, for every tool that takes either;
       and what models like to call these fields.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from holon.model.limits import (
    ID_CHARS_MAX,
    OBJECTIVE_CHARS_MAX,
    TODO_ITEMS_COUNT_MAX,
    TODO_TEXT_CHARS_MAX,
)
from holon.model.work_item import TodoItem, TodoState

ITEM_ALIASES: Final = (
    ("id", "work_item_id"),
    ("item_id", "work_item_id"),
    ("work_item", "work_item_id"),
)
BODY_ALIASES: Final = (
    ("title", "objective"),
    ("goal", "objective"),
    ("description", "objective"),
    ("todos", "todo_list"),
    ("todo", "todo_list"),
    ("checklist", "todo_list"),
    ("title", "text"),
    ("content", "text"),
    ("task", "text"),
    ("status", "plan_status"),
    ("status", "state"),
)

ItemIdText: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS_MAX)]
ObjectiveText: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=OBJECTIVE_CHARS_MAX)
]


class TodoArgument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a checklist."""

    text: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=TODO_TEXT_CHARS_MAX, description="What is to be done."
        ),
    ]
    state: Annotated[
        TodoState, msgspec.Meta(description="How far it has come; pending when left out.")
    ] = TodoState.PENDING


TodoArguments: TypeAlias = Annotated[
    tuple[TodoArgument, ...], msgspec.Meta(max_length=TODO_ITEMS_COUNT_MAX)
]


def todo_items(listed: tuple[TodoArgument, ...]) -> tuple[TodoItem, ...]:
    """The checklist as the record keeps it."""
    return tuple(TodoItem(text=todo.text, state=todo.state) for todo in listed)
