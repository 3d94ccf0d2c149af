"""Which models an agent's round may be asked of, and in which order.

Owns:  the order of candidates, and what an operator sees of an agent's model.
Rule 1: an agent's own model comes first and the runtime's chain follows it: the default, then the
        fallbacks, each model once. Without an own model the chain stands alone.
Rule 2: with fallback switched off only the first of them is asked.
Rule 3: nothing here is remembered between rounds: a fallback that answered once leads nothing.
"""

from enum import StrEnum

from holon.model.model_ref import ModelRef
from holon.model.record import Record


class RouteFacts(Record, frozen=True, kw_only=True):
    """What is configured for the runtime, and what for one agent."""

    default: ModelRef
    fallbacks: tuple[ModelRef, ...] = ()
    override: ModelRef | None = None
    fallback_disabled: bool = False


class ModelSource(StrEnum):
    """Where an agent's model comes from."""

    RUNTIME_DEFAULT = "runtime_default"
    AGENT_OVERRIDE = "agent_override"


class AgentModelState(Record, frozen=True, kw_only=True):
    """An agent's model as status surfaces show it; every model in its textual form."""

    source: ModelSource
    runtime_default_model: str
    effective_model: str
    effective_fallback_models: tuple[str, ...] = ()
    override_model: str | None = None


def ordered_models(facts: RouteFacts) -> tuple[ModelRef, ...]:
    """Return the models to ask, first to last; there is always one."""
    own = () if facts.override is None else (facts.override,)
    chain = tuple(dict.fromkeys((*own, facts.default, *facts.fallbacks)))
    return chain[:1] if facts.fallback_disabled else chain


def agent_model_state(facts: RouteFacts) -> AgentModelState:
    """Return what an operator sees of an agent's model."""
    first, *rest = ordered_models(facts)
    overridden = facts.override is not None
    return AgentModelState(
        source=ModelSource.AGENT_OVERRIDE if overridden else ModelSource.RUNTIME_DEFAULT,
        runtime_default_model=str(facts.default),
        effective_model=str(first),
        effective_fallback_models=tuple(str(ref) for ref in rest),
        override_model=str(facts.override) if overridden else None,
    )
