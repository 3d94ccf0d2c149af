"""Which models a round may be asked of, and what an operator sees of it."""

import pytest

from holon.decide.provider_route import (
    AgentModelState,
    ModelSource,
    RouteFacts,
    agent_model_state,
    ordered_models,
)
from holon.model.model_ref import ModelRef, parse_model_ref

ONE, TWO, THREE, OWN = (parse_model_ref(f"lab/{name}") for name in ("one", "two", "three", "own"))


@pytest.mark.requirement("provider-retry:ordered-candidates")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (RouteFacts(default=ONE), (ONE,)),
        (RouteFacts(default=ONE, fallbacks=(TWO, THREE)), (ONE, TWO, THREE)),
        (RouteFacts(default=ONE, fallbacks=(TWO, ONE, TWO)), (ONE, TWO)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), override=OWN), (OWN, ONE, TWO)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), override=TWO), (TWO, ONE)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), override=ONE), (ONE, TWO)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), fallback_disabled=True), (ONE,)),
        (RouteFacts(default=ONE, override=OWN, fallback_disabled=True), (OWN,)),
    ],
)
def test_an_own_model_comes_first_and_each_model_once(
    facts: RouteFacts, expected: tuple[ModelRef, ...]
) -> None:
    assert ordered_models(facts) == expected


@pytest.mark.requirement("provider-retry:model-state-is-explicit")
def test_an_agent_without_a_model_of_its_own_shows_the_runtimes() -> None:
    assert agent_model_state(RouteFacts(default=ONE, fallbacks=(TWO,))) == AgentModelState(
        source=ModelSource.RUNTIME_DEFAULT,
        runtime_default_model="lab/one",
        effective_model="lab/one",
        effective_fallback_models=("lab/two",),
    )


@pytest.mark.requirement("provider-retry:model-state-is-explicit")
@pytest.mark.parametrize("own", [OWN, ONE])
def test_an_agents_own_model_is_shown_as_such_even_when_it_is_the_default(own: ModelRef) -> None:
    state = agent_model_state(RouteFacts(default=ONE, fallbacks=(TWO,), override=own))
    assert state.source is ModelSource.AGENT_OVERRIDE
    assert state.override_model == state.effective_model == str(own)
    assert state.runtime_default_model == "lab/one"
    assert state.effective_fallback_models[-1] == "lab/two"


@pytest.mark.requirement("provider-retry:clearing-an-own-model")
def test_clearing_an_own_model_brings_the_runtimes_chain_back() -> None:
    before = RouteFacts(default=ONE, fallbacks=(TWO,))
    assert ordered_models(RouteFacts(default=ONE, fallbacks=(TWO,), override=OWN)) != (ONE, TWO)
    assert ordered_models(before) == (ONE, TWO)
