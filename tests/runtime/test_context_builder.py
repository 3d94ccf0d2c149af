"""What a turn's prompt is made of, gathered by a real host."""

import msgspec
import pytest

from holon.model.errors import RefusedError
from holon.model.events.briefs import BriefKind
from holon.model.guidance import (
    InstructionKind,
    InstructionSource,
    LoadedGuidance,
    LoadedInstructions,
)
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import PromptFrame
from holon.model.turns.turn import TerminalKind
from holon.model.values import AgentId
from holon.ports.providers import Candidate
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.support.builders import MAIN
from tests.support.single_model import SingleModel
from tests.tools.work_item_stage import with_work_tools

TALK = [rule("hello", calls("AgentGet"), says("hi")), rule("bye", says("so long"))]


def texts(frame: PromptFrame) -> str:
    blocks = (*frame.system_blocks, *frame.context_blocks)
    return "\n".join((frame.system_prompt, *(block.text for block in blocks)))


@pytest.mark.requirement("prompt-frame:continuation-keeps-the-frame")
@pytest.mark.requirement("prompt-frame:same-frame-on-every-turn")
def test_rounds_and_turns_of_an_agent_share_one_frame() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(1_000)
        await house.prompt("bye")
        await house.rest(1_000)
        first, second, third = (request.frame for request in house.model.requests)
        assert msgspec.json.encode(first) == msgspec.json.encode(second)
        assert first.cache is not None
        assert third.cache is not None
        assert first.cache.prompt_cache_key == third.cache.prompt_cache_key
        assert "agent_home: /home/agents/main" in texts(first)
        assert "execution_root: /home/agents/main" in texts(first)

    run_house(story, script=TALK)


@pytest.mark.requirement("prompt:current-item-is-whole")
@pytest.mark.requirement("prompt:process-trace")
def test_a_turn_sees_its_item_the_others_and_what_was_done() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        item = await house.host.work.create(MAIN, objective="mend the roof")
        other = await house.host.work.create(MAIN, objective="paint the door")
        await house.host.work.focus(item.id)
        await house.host.control.resume(MAIN)
        await house.rest(30_000)
        first, *_, last = (texts(request.frame) for request in house.model.requests)
        assert f"{item.id}: runnable, plan draft\nobjective: mend the roof" in first
        assert f"queued_runnable (1):\n- {other.id}: paint the door" in first
        assert "## Work on it so far" not in first
        assert "Work on it so far" in last
        assert "AgentGet: done: {}" in last

    script = [
        rule("mend the roof", calls("AgentGet"), says("looked")),
        rule("paint", calls("AgentGet"), says("looked")),
    ]
    run_house(story, script=script, setup=with_work_tools())


@pytest.mark.requirement("prompt:pinned-over-budget-is-typed")
def test_a_prompt_that_cannot_fit_ends_the_turn_and_starts_no_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SmallModel(SingleModel):
        def find(self, ref: ModelRef) -> Candidate:
            """Return the one provider, which takes next to nothing."""
            found = super().find(ref)
            return Candidate(
                model_ref=ref, provider=found.provider, account="a", prompt_tokens_max=500
            )

    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(600_000)
        (brief,) = await house.briefs()
        assert brief.kind is BriefKind.FAILURE
        assert brief.failure is not None
        assert brief.failure.kind == TerminalKind.BASELINE_OVER_BUDGET
        assert "larger context window" in (brief.failure.recovery_hint or "")
        agent = await house.store.reads.agents.agent(MAIN)
        assert agent is not None
        assert agent.last_terminal is not None
        assert agent.last_terminal.kind is TerminalKind.BASELINE_OVER_BUDGET
        assert house.model.requests == []
        look = await house.host.prompts.look(MAIN, text="hello")
        assert look.sections == ()
        assert look.over_budget is not None

    monkeypatch.setattr("tests.runtime.house.SingleModel", SmallModel)
    run_house(story, script=TALK)


class OneFile:
    """Guidance that is always there."""

    async def load(self, *, agent_home: str, workspace_anchor: str | None) -> LoadedGuidance:
        """Return it, and tell where it was looked for."""
        text = f"home {agent_home}, anchor {workspace_anchor}"
        file = LoadedInstructions(
            source=InstructionSource.AGENT,
            kind=InstructionKind.AGENTS_MD,
            path=f"{agent_home}/AGENTS.md",
            text=text,
            bytes=len(text),
            sha256="s",
        )
        return LoadedGuidance(files=(file,))


@pytest.mark.requirement("prompt:debug-shows-the-frame")
@pytest.mark.requirement("prompt:guidance-is-anchored")
def test_a_look_at_the_prompt_shows_what_will_be_sent() -> None:
    async def story(house: House) -> None:
        look = await house.host.prompts.look(MAIN, text="hello")
        (guidance,) = look.loaded_instructions
        assert guidance.path == "/home/agents/main/AGENTS.md"
        await house.prompt("hello")
        await house.rest(1_000)
        sent = texts(house.model.requests[0].frame)
        shown = [section.text for section in look.sections if section.text is not None]
        assert all(text in sent for text in shown[:-1])
        assert "home /home/agents/main, anchor None" in sent
        assert "hello" in shown[-1]
        assert [each.name for each in look.sections if each.cache_breakpoint] == [
            "event_turn",
            "context_contract",
        ]
        assert look.cache is not None
        sent_cache = house.model.requests[0].frame.cache
        assert sent_cache is not None
        assert look.cache.prompt_cache_key == sent_cache.prompt_cache_key
        with pytest.raises(RefusedError):
            await house.host.prompts.look(AgentId("nobody"))

    run_house(story, script=TALK, setup=Setup(instructions=OneFile()))


def test_a_look_without_words_is_for_the_next_message() -> None:
    async def story(house: House) -> None:
        assert (await house.host.prompts.look(MAIN)).sections[-1].text is None
        await house.host.control.pause(MAIN)
        await house.prompt("hello there")
        look = await house.host.prompts.look(MAIN)
        (said,) = (each for each in look.sections if each.name == "current_input")
        assert "hello there" in (said.text or "")
        await house.host.control.resume(MAIN)
        await house.rest(1_000)

    run_house(story, script=TALK)
