"""Which models a round may be asked of, and in which order."""

import pytest

from holon.decide.providers.routes import RouteFacts, ordered_models
from holon.model.providers.models import ModelRef, parse_model_ref

ONE, TWO, THREE, OWN = (parse_model_ref(f"lab/{name}") for name in ("one", "two", "three", "own"))


@pytest.mark.requirement("provider-retry:ordered-candidates")
@pytest.mark.requirement("model-choice:default-does-not-stand-in")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (RouteFacts(default=ONE), (ONE,)),
        (RouteFacts(default=ONE, fallbacks=(TWO, THREE)), (ONE, TWO, THREE)),
        (RouteFacts(default=ONE, fallbacks=(TWO, ONE, TWO)), (ONE, TWO)),
        (RouteFacts(default=ONE, override=OWN), (OWN,)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), override=OWN), (OWN, TWO)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), override=TWO), (TWO,)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), override=ONE), (ONE, TWO)),
        (RouteFacts(default=ONE, fallbacks=(TWO,), fallback_disabled=True), (ONE,)),
        (RouteFacts(default=ONE, override=OWN, fallback_disabled=True), (OWN,)),
    ],
)
def test_an_own_model_takes_the_place_of_the_default_and_each_model_once(
    facts: RouteFacts, expected: tuple[ModelRef, ...]
) -> None:
    assert ordered_models(facts) == expected


@pytest.mark.requirement("provider-retry:clearing-an-own-model")
def test_clearing_an_own_model_brings_the_runtimes_chain_back() -> None:
    before = RouteFacts(default=ONE, fallbacks=(TWO,))
    assert ordered_models(RouteFacts(default=ONE, fallbacks=(TWO,), override=OWN)) != (ONE, TWO)
    assert ordered_models(before) == (ONE, TWO)
