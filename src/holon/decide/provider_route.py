"""Which models an agent's round may be asked of, and in which order.

Owns:  the order of candidates.
Rule 1: an agent's own model comes first and the runtime's chain follows it: the default, then the
        fallbacks, each model once. Without an own model the chain stands alone.
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
    own = () if facts.override is None else (facts.override,)
    chain = tuple(dict.fromkeys((*own, facts.default, *facts.fallbacks)))
    return chain[:1] if facts.fallback_disabled else chain
