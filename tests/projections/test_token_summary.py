"""What an agent has cost, from persisted totals."""

import pytest

from holon.adapters.sqlite import agents
from holon.model.limits import MINUTE_MS
from holon.model.providers.attempts import TokenUsage
from holon.projections.agents.summary import token_summary
from tests.runtime.house import House, run_house
from tests.support.builders import MAIN
from tests.support.scripted_provider import ScriptedRound, ScriptedRule

USED = TokenUsage(input_tokens=40, output_tokens=2)
SCRIPT = [
    ScriptedRule(when="count", rounds=(ScriptedRound(text="done", usage=USED),)),
    ScriptedRule(when="fail", rounds=(ScriptedRound(fail="auth_rejected"),)),
]


async def last_usage(house: House) -> TokenUsage | None:
    """What a surface shows of the newest turn that reported tokens."""
    surface = await house.store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    return surface.last_usage


@pytest.mark.requirement("provider-plane:token-summary-from-persisted-state")
def test_the_summary_has_the_totals_and_the_newest_turn_that_reported_tokens() -> None:
    async def story(house: House) -> None:
        empty = token_summary((await house.agent()).totals, await last_usage(house))
        assert (empty.total.total_tokens, empty.total_model_rounds, empty.last_turn) == (0, 0, None)
        for text in ("count one", "count two", "fail now"):
            await house.prompt(text)
            await house.rest(MINUTE_MS)
        found = token_summary((await house.agent()).totals, await last_usage(house))
        assert found.total.total_tokens == 84
        assert found.total_model_rounds == 2
        assert found.last_turn == USED

    run_house(story, script=SCRIPT)


def test_turns_without_tokens_are_not_looked_through_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents, "SURFACE_USAGE_TURNS_COUNT_MAX", 2)

    async def story(house: House) -> None:
        found: list[TokenUsage | None] = []
        for text in ("count one", "fail now", "fail again"):
            await house.prompt(text)
            await house.rest(MINUTE_MS)
            found.append(await last_usage(house))
        assert found == [USED, USED, None]

    run_house(story, script=SCRIPT)
