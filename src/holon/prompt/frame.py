"""The frame of a request: everything the model reads besides the conversation.

Owns:  which sections a prompt has, in which order.
Rule 1: for one agent and one set of tools the frame is the same, byte for byte, in every turn.
"""

from collections.abc import Sequence

import msgspec

from holon.model.ids import AgentId
from holon.model.prompt_frame import PromptBlock, PromptFrame, Stability
from holon.model.tool import ToolSpec
from holon.prompt.cache_scope import cache_scope


def frame_of(agent_id: AgentId, identity_text: str, tools: Sequence[ToolSpec]) -> PromptFrame:
    """Return the frame of an agent's turn."""
    itself = PromptBlock(text=f"Your agent id is {agent_id}.", stability=Stability.AGENT_SCOPED)
    frame = PromptFrame(system_prompt=identity_text, context_blocks=(itself,))
    return msgspec.structs.replace(frame, cache=cache_scope(agent_id, frame, tools))
