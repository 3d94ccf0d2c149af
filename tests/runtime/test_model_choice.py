"""A model that was chosen for an agent answers, or a fallback does, or nothing does."""

import pytest

from holon.adapters.providers.catalog import provider_route
from holon.model.limits import MINUTE_MS
from holon.model.providers.attempts import (
    AttemptOutcome,
    LeftBecause,
    ProviderTimeoutError,
    TransportUnsupportedError,
)
from holon.model.providers.models import ProviderResolverSettings, ProviderSetting
from holon.projections.agents.list import AgentModelState, RuntimeModels, agent_model_state
from tests.runtime.cast import rule, says
from tests.runtime.house import House, run_house
from tests.runtime.stage import Stage, play, said
from tests.support.builders import MAIN

ONE, TWO = "lab/one", "lab/two"


@pytest.mark.requirement("model-choice:default-does-not-stand-in")
def test_a_bad_model_of_an_agent_is_not_answered_for_by_the_default() -> None:
    async def scene(stage: Stage) -> None:
        failed = await stage.fail(override="lab/misspelt")
        assert failed.failure.kind == "model_unavailable"
        assert "lab/misspelt" in failed.failure.summary
        assert stage.asked == {}, "nobody else was asked"

    play(scene, {ONE: [said()]})


@pytest.mark.requirement("model-choice:default-does-not-stand-in")
def test_a_configured_fallback_answers_for_it_and_both_are_on_record() -> None:
    async def scene(stage: Stage) -> None:
        spoke = await stage.succeed(override="lab/misspelt")
        assert spoke.timeline is not None
        assert spoke.timeline.requested_model_ref == "lab/misspelt"
        assert spoke.timeline.active_model_ref == TWO
        assert stage.asked == {TWO: 1}

    play(scene, {ONE: [said()], TWO: [said()]})


@pytest.mark.requirement("model-choice:requested-and-active-are-shown")
def test_the_status_shows_what_was_asked_for_and_what_was_asked() -> None:
    async def shown(house: House) -> AgentModelState:
        surface = await house.store.reads.agents.agent_surface(MAIN)
        assert surface is not None
        return agent_model_state(
            None, RuntimeModels(default="scripted/test"), last=surface.last_exchange
        )

    async def story(house: House) -> None:
        view = await shown(house)
        assert (view.requested_model, view.active_model) == (None, None)
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        view = await shown(house)
        assert (view.requested_model, view.active_model) == ("scripted/test", "scripted/test")

    run_house(story, script=[rule("", says("hi"))])


@pytest.mark.requirement("model-choice:codex-on-another-transport-fails-closed")
@pytest.mark.parametrize(
    "transport", ["openai_responses", "openai_chat_completions", "anthropic_messages", "scripted"]
)
def test_codex_on_another_transport_is_refused_before_anything_is_sent(transport: str) -> None:
    setting = ProviderSetting(transport=transport, base_url="http://127.0.0.1:9/v1")
    settings = ProviderResolverSettings(providers={"openai-codex": setting})
    with pytest.raises(TransportUnsupportedError, match="openai_codex_responses") as caught:
        provider_route("openai-codex", settings)
    assert caught.value.hint is not None
    own = ProviderSetting(transport="openai_codex_responses")
    route = provider_route(
        "openai-codex", ProviderResolverSettings(providers={"openai-codex": own})
    )
    assert route.transport == "openai_codex_responses"


@pytest.mark.requirement("model-choice:outcomes-say-what-happened")
def test_one_attempt_at_a_resting_route_is_not_called_exhausted() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(2):
            await stage.fail()  # its circuit opens with the fifth failure in a row
        failed = await stage.fail()
        assert failed.timeline is not None
        [attempt] = failed.timeline.attempts
        assert attempt.outcome is AttemptOutcome.FAIL_FAST_ABORTED
        assert attempt.left_because is LeftBecause.CIRCUIT_OPEN
        assert attempt.failure_kind == "timeout", "what it failed with is still said"

    play(scene, {ONE: [ProviderTimeoutError("too slow")]})
