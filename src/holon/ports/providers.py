"""Model providers: one attempt at one model, and where models are found.

Contract of Provider: `answer` keeps no conversation state that the request does not carry (a cache
of the wire may only save work, never change an answer); it raises nothing but ProviderError, with
diagnostics where an exchange took place; cancelling it abandons the exchange. `on_progress` is
called from the event loop, in order, and never after `answer` has returned.

Contract of ModelDirectory: `find` raises ProviderError (fail-fast) when a model cannot be used as
configured, saying why and what to do; finding costs no network traffic.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import AnswerProgress, ModelAnswer

OnProgress: TypeAlias = Callable[[AnswerProgress], None]


def ignore_progress(progress: AnswerProgress) -> None:
    """Ignore the progress of an answer."""


class Provider(Protocol):
    """Something that can take a conversation one round further."""

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next round."""
        ...


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be asked. `account` names whose allowance an attempt uses."""

    model_ref: ModelRef
    provider: Provider
    account: str
    is_trial: bool = False  # for trying Holon: it gets no tool that acts, unless allowed
    prompt_tokens_max: int | None = None  # how large a prompt may grow, where that is known
    output_tokens_max: int | None = None  # how long an answer may be, where that is known


class ModelPreference(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime's own choice: a model, and whom to ask when it fails."""

    default: ModelRef
    fallbacks: tuple[ModelRef, ...] = ()


class ModelDirectory(Protocol):
    """Where a model reference leads."""

    @property
    def preference(self) -> ModelPreference:
        """The models to use for an agent without a model override."""
        ...

    def find(self, ref: ModelRef) -> Candidate:
        """Return the candidate a reference stands for, or raise ProviderError."""
        ...
