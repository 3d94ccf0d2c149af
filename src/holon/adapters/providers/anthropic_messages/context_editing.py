"""Anthropic's clearing of old tool uses, when an operator has asked for it.

Owns:  the options that are sent, the beta they need, and the remark on what could be cleared.
Rule 1: the request itself stays whole and replayable: the provider clears its own view, never ours.
Rule 2: the remark is a number. It repeats nothing of what a tool returned.
Rule 3: counting costs what a round adds: results follow their calls in the next message.
Rule 4: patches are never cleared: the model builds on what it has changed.
"""

from collections.abc import Hashable, Sequence
from typing import Final

from holon.adapters.providers.endpoint import ContextEditing
from holon.adapters.providers.joined_conversations import JoinedConversations, Piece
from holon.model.conversation import (
    AssistantMessage,
    ConversationMessage,
    ToolResultBlock,
    ToolUseBlock,
    tool_uses_of,
)
from holon.model.json_value import JsonValue

BETA: Final = "context-management-2025-06-27"
KEPT_TOOLS: Final = ("ApplyPatch",)


def context_management(editing: ContextEditing) -> JsonValue:
    """Return the wire's options for clearing old tool uses."""
    edit: dict[str, JsonValue] = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": editing.trigger_input_tokens},
        "keep": {"type": "tool_uses", "value": editing.keep_recent_tool_uses},
        "exclude_tools": list(KEPT_TOOLS),
    }
    if editing.clear_at_least_input_tokens is not None:
        edit["clear_at_least"] = {
            "type": "input_tokens",
            "value": editing.clear_at_least_input_tokens,
        }
    return {"edits": [edit]}


class ClearableResults:
    """What could be cleared of each conversation, counted on as it grows."""

    def __init__(self) -> None:
        self._counted = JoinedConversations(start=0)  # bytes of all results that are not kept

    def note(
        self, key: Hashable, conversation: tuple[ConversationMessage, ...], editing: ContextEditing
    ) -> str:
        """Return the remark for the diagnostics of this exchange."""
        eligible = self.eligible_bytes(key, conversation, editing)
        return f"context_editing: eligible_tool_result_bytes={eligible}"

    def eligible_bytes(
        self, key: Hashable, conversation: tuple[ConversationMessage, ...], editing: ContextEditing
    ) -> int:
        """Return how many bytes of tool results are old enough to be cleared."""

        def count(index: int, so_far: int) -> Piece[int]:
            calls = _calls_of(conversation[index - 1]) if index else ()
            return Piece(b"", so_far + _result_bytes(conversation[index], calls))

        counts = self._counted.joined(key, conversation, count).notes
        whole = counts[-1] if counts else 0
        return whole - _recent_bytes(conversation, editing.keep_recent_tool_uses)


def _recent_bytes(conversation: Sequence[ConversationMessage], calls_count: int) -> int:
    """Return how many bytes the last calls gave."""
    found = 0
    for index in range(len(conversation) - 1, -1, -1):
        if calls_count <= 0:
            break
        calls = _calls_of(conversation[index])[-calls_count:]
        calls_count -= len(calls)
        if index + 1 < len(conversation):
            found += _result_bytes(conversation[index + 1], calls)
    return found


def _calls_of(message: ConversationMessage) -> tuple[ToolUseBlock, ...]:
    return tool_uses_of(message.blocks) if isinstance(message, AssistantMessage) else ()


def _result_bytes(message: ConversationMessage, calls: Sequence[ToolUseBlock]) -> int:
    """Return how many bytes a message holds of what these calls gave and may be cleared."""
    clearable = {call.call_id for call in calls if call.name not in KEPT_TOOLS}
    return sum(
        len(block.content.encode())
        for block in message.blocks
        if isinstance(block, ToolResultBlock) and block.call_id in clearable
    )
