"""Typed identifiers and their form.

Owns:  one type per kind of id, the prefix each kind carries, and the check at the door.
Rule 1: ids are minted by the id source port; nothing here makes one up.
Rule 2: an id that came from outside passes `parse_agent_id` or `parse_record_id` before it is used,
        so an id can never be a path, an option or a page of text.
"""

import re
from enum import StrEnum
from typing import Final, NewType

from holon.model.errors import BadIdError
from holon.model.limits import ID_CHARS_MAX

AgentId = NewType("AgentId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
BriefId = NewType("BriefId", str)
TaskId = NewType("TaskId", str)
TimerId = NewType("TimerId", str)
WaitId = NewType("WaitId", str)
WorkItemId = NewType("WorkItemId", str)
SummaryId = NewType("SummaryId", str)
TriggerId = NewType("TriggerId", str)
WorkspaceId = NewType("WorkspaceId", str)
EpisodeId = NewType("EpisodeId", str)
RequestId = NewType("RequestId", str)


class IdPrefix(StrEnum):
    """What an id starts with, so that a person can tell kinds apart."""

    MESSAGE = "msg"
    TURN = "turn"
    BRIEF = "brief"
    TASK = "task"
    TIMER = "timer"
    WAIT = "wait"
    WORK_ITEM = "work"
    SUMMARY = "sum"
    TRIGGER = "trig"
    OCCUPANCY = "occ"
    EPISODE = "ep"
    REQUEST = "req"
    TEMPORARY_RUN = "tmp_run"  # an agent made for one run


AGENT_ID_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
RECORD_ID_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_:.-]*")


def parse_agent_id(text: str) -> AgentId:
    """Return `text` as an agent id, or raise BadIdError."""
    _require_form(text, AGENT_ID_PATTERN, what="agent id")
    return AgentId(text)


def parse_record_id(text: str, *, what: str) -> str:
    """Return `text` if it has the form of a record id, or raise BadIdError naming `what`."""
    _require_form(text, RECORD_ID_PATTERN, what=what)
    return text


def _require_form(text: str, pattern: re.Pattern[str], *, what: str) -> None:
    if not text:
        raise BadIdError(
            f"the {what} is empty", hint=f"the {what} has at least one letter or digit"
        )
    if len(text) > ID_CHARS_MAX:
        raise BadIdError(
            f"the {what} is {len(text)} characters long",
            hint=f"use at most {ID_CHARS_MAX} characters",
        )
    if pattern.fullmatch(text) is None:
        raise BadIdError(
            f"{text!r} is not a valid {what}",
            hint="use lower-case letters, digits, '-' and '_', starting with a letter or digit",
        )
