"""Which models an agent's round may be asked of, and in which order.

Owns:  the order of candidates.
Rule 1: an agent's own model stands in the place of the default, and the fallbacks follow, each
        model once. The default never answers for a model that was chosen in its stead: where no
        fallback is configured and the own model fails, the turn fails.
Rule 2: with fallback switched off only the first of them is asked.
Rule 3: nothing here is remembered between rounds: a fallback that answered once leads nothing.
"""

from holon.model.model_ref import ModelRef
from holon.model.record import Record


class RouteFacts(Record, frozen=True, kw_only=True):
    """What is configured for the runtime, and what for one agent."""

    default: ModelRef
    fallbacks: tuple[ModelRef, ...] = ()
    override: ModelRef | None = None
    fallback_disabled: bool = False


def ordered_models(facts: RouteFacts) -> tuple[ModelRef, ...]:
    """Return the models to ask, first to last; there is always one."""
    chain = tuple(dict.fromkeys((facts.override or facts.default, *facts.fallbacks)))
    return chain[:1] if facts.fallback_disabled else chain
