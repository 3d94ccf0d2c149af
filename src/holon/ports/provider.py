"""A model provider: answer one round, or raise a ProviderError.

Contract: `answer` keeps no conversation state that the request does not carry; it raises nothing
but ProviderError; cancelling it abandons the exchange.
"""

from typing import Protocol

from holon.model.prompt_frame import ProviderRequest
from holon.model.turn import ModelSpoke


class Provider(Protocol):
    """Something that can take a conversation one round further."""

    async def answer(self, request: ProviderRequest) -> ModelSpoke:
        """Return the next round."""
        ...
