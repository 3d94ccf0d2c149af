"""One section of a prompt, before it is known how much of it fits.

Owns:  the row a section is described by.
Rule 1: a renderer is a pure function of the facts. It returns nothing when there is nothing to say.
Rule 2: what is pinned is never left out: it is shown whole, or in its compact form.
"""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import TypeAlias

import msgspec

from holon.model.prompt_frame import Stability
from holon.prompt.facts import PromptFacts

Renderer: TypeAlias = Callable[[PromptFacts], str | None]


class Part(StrEnum):
    """Which part of the frame a section belongs to."""

    SYSTEM = "system"
    CONTEXT = "context"


class Keep(IntEnum):
    """Who gives way when room is short: the highest first."""

    PINNED = 0
    POLICY = 1
    GUIDANCE = 2
    USEFUL = 3
    EXTRA = 4


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the prompt. `absent` says why there is none where the renderer has nothing."""

    name: str
    part: Part
    stability: Stability
    keep: Keep
    full: Renderer
    compact: Renderer | None = None
    absent: str = "nothing to say"
    may_be_cut: bool = True
