"""What a provider says: the finished answer, and the pieces of it on the way.

Owns:  the one answer form and the one progress form that every wire yields.
Rule 1: progress is a preview for whoever watches. It is never stored and never acted on; the
        finished answer alone counts.
Rule 2: the tool uses of an answer have distinct call ids: results are matched by them.
"""

from typing import TypeAlias

from holon.model.conversation import AssistantBlock
from holon.model.provider_attempt import TokenUsage, TransportDiagnostics
from holon.model.record import Record
from holon.model.turn import StopReason


class ModelAnswer(Record, frozen=True, kw_only=True):
    """One round, whole."""

    blocks: tuple[AssistantBlock, ...]
    stop_reason: StopReason
    usage: TokenUsage | None = None
    diagnostics: TransportDiagnostics | None = None


class TextGrew(Record, tag_field="kind", tag="text_grew", frozen=True, kw_only=True):
    """The model said a little more."""

    text: str


class ThinkingGrew(Record, tag_field="kind", tag="thinking_grew", frozen=True, kw_only=True):
    """The model thought a little more."""

    text: str


class CallGrew(Record, tag_field="kind", tag="call_grew", frozen=True, kw_only=True):
    """The model is writing a tool call; `fragment` is a piece of its arguments."""

    call_id: str
    name: str
    fragment: str


AnswerProgress: TypeAlias = TextGrew | ThinkingGrew | CallGrew
