"""Anthropic's clearing of old tool uses, when an operator has asked for it.

Owns:  the options that are sent, the beta they need, and the remark on what could be cleared.
Rule 1: the request itself stays whole and replayable: the provider clears its own view, never ours.
Rule 2: the remark is a number. It repeats nothing of what a tool returned.
Rule 3: patches are never cleared: the model builds on what it has changed.
"""

from collections.abc import Sequence
from typing import Final

from holon.adapters.providers.endpoint import ContextEditing
from holon.model.conversation import (
    AssistantMessage,
    ConversationMessage,
    ToolResultBlock,
    UserMessage,
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


def eligible_bytes(conversation: Sequence[ConversationMessage], editing: ContextEditing) -> int:
    """Return how many bytes of tool results are old enough to be cleared."""
    calls = [
        call
        for message in conversation
        if isinstance(message, AssistantMessage)
        for call in tool_uses_of(message.blocks)
    ]
    old = calls[: max(len(calls) - editing.keep_recent_tool_uses, 0)]
    clearable = {call.call_id for call in old if call.name not in KEPT_TOOLS}
    return sum(
        len(block.content.encode())
        for message in conversation
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, ToolResultBlock) and block.call_id in clearable
    )


def clearing_note(conversation: Sequence[ConversationMessage], editing: ContextEditing) -> str:
    """Return the remark for the diagnostics of this exchange."""
    return f"context_editing: eligible_tool_result_bytes={eligible_bytes(conversation, editing)}"
