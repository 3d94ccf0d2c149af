"""What may rotate the cache key, and what must not."""

import pytest

from holon.model.providers.prompt_frame import PromptBlock, PromptFrame, Stability
from holon.model.values import AgentId
from holon.prompt.facts import offered_tools
from holon.prompt.frame import CacheFacts, cache_scope
from holon.tools.registry import builtin_tools

MAIN = AgentId("main")
TOOLS = builtin_tools().offered


def a_frame(**texts: str) -> PromptFrame:
    blocks = tuple(
        PromptBlock(text=text, stability=Stability(stability))
        for stability, text in {
            "stable": "s",
            "agent_scoped": "a",
            "turn_scoped": "t",
            **texts,
        }.items()
    )
    return PromptFrame(system_prompt="you are", context_blocks=blocks)


BEFORE = cache_scope(MAIN, a_frame(), TOOLS)


@pytest.mark.requirement("prompt-frame:key-survives-turn-scoped-change")
@pytest.mark.requirement("prompt-frame:fingerprint-covers-everything")
def test_turn_scoped_text_moves_the_fingerprint_and_not_the_key() -> None:
    found = cache_scope(MAIN, a_frame(turn_scoped="now this"), TOOLS)
    assert found.prompt_cache_key == BEFORE.prompt_cache_key
    assert found.context_fingerprint != BEFORE.context_fingerprint


@pytest.mark.requirement("prompt-frame:fingerprint-covers-everything")
def test_another_input_is_another_prompt_in_the_same_cache() -> None:
    one, other = (
        cache_scope(MAIN, a_frame(), TOOLS, CacheFacts(current_input=text)) for text in ("hi", "ho")
    )
    assert one.prompt_cache_key == other.prompt_cache_key == BEFORE.prompt_cache_key
    assert one.context_fingerprint != other.context_fingerprint


@pytest.mark.requirement("prompt-frame:key-may-rotate-with-the-stable-surface")
@pytest.mark.parametrize("stability", ["stable", "agent_scoped"])
def test_lasting_text_rotates_the_key(stability: str) -> None:
    found = cache_scope(MAIN, a_frame(**{stability: "changed"}), TOOLS)
    assert found.prompt_cache_key != BEFORE.prompt_cache_key


def test_the_tools_and_the_agent_are_part_of_the_key() -> None:
    assert (
        cache_scope(MAIN, a_frame(), offered_tools(TOOLS.specs[:1])).prompt_cache_key
        != BEFORE.prompt_cache_key
    )
    other = cache_scope(AgentId("other"), a_frame(), TOOLS)
    assert other.prompt_cache_key.startswith("other:ctx:")


def test_moving_text_from_one_block_to_the_next_is_another_prompt() -> None:
    one = PromptFrame(system_prompt="ab", context_blocks=())
    other = PromptFrame(system_prompt="a", context_blocks=())
    none = offered_tools(())
    assert cache_scope(MAIN, one, none) != cache_scope(MAIN, other, none)
