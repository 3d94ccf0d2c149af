"""Long turns in a real host: shortened, asked for a checkpoint, gone on with after a crash."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holon.decide.turns.compaction import FULL_REQUEST
from holon.decide.turns.step import RESUME
from holon.model.events.briefs import BriefKind
from holon.model.events.event import TurnEnded
from holon.model.providers.attempts import TokenUsage
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.compaction import (
    CheckpointRequested,
    CheckpointResumed,
    HistoryCompacted,
    TurnBaselineOverBudget,
    TurnCompactionApplied,
)
from holon.model.turns.conversation import AssistantBlock, TextBlock, ToolUseBlock
from holon.model.turns.turn import ModelAnswer, StopReason, TerminalKind
from holon.model.values import CallId
from holon.ports.clock import Clock
from holon.ports.providers import Candidate, OnProgress
from tests.runtime.house import House, Setup, run_house
from tests.support.builders import MAIN
from tests.support.single_model import SingleModel

WORDS = "nothing found here yet, looking further. " * 60


class Worker:
    """A model that looks around at length, and writes a checkpoint whenever it is asked for one.

    It counts its own rounds: a conversation that was shortened does not show how many there were.
    """

    def __init__(self, rounds: int) -> None:
        self.left = rounds
        self.count = 0
        self.clock: Clock | None = None

    def awake(self, clock: Clock) -> "Worker":
        """Go on under this clock."""
        self.clock = clock
        return self

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Say a lot, or the checkpoint, or the end."""
        del on_progress
        assert self.clock is not None
        await self.clock.sleep_for(10)
        self.count += 1
        last = request.conversation[-1].blocks[-1]
        asked = getattr(last, "text", "")
        blocks: tuple[AssistantBlock, ...]
        if asked == FULL_REQUEST:
            blocks = (TextBlock(text="aim: look; done: most of it"),)
        elif self.left <= 0:
            blocks = (TextBlock(text="looked everywhere"),)
        else:
            self.left -= 1
            call = ToolUseBlock(call_id=CallId(f"c{self.count}"), name="ListWorkItems", input={})
            blocks = (TextBlock(text=WORDS), call)
        has_call = any(isinstance(block, ToolUseBlock) for block in blocks)
        return ModelAnswer(
            blocks=blocks,
            stop_reason=StopReason.TOOL_USE if has_call else StopReason.END_TURN,
            usage=TokenUsage(input_tokens=len(msgspec.json.encode(request)) // 4),
        )


def small_model(tokens: int) -> type[SingleModel]:
    """A directory whose model takes prompts of so many tokens."""

    class SmallModel(SingleModel):
        def find(self, ref: ModelRef) -> Candidate:
            """Return the one provider."""
            found = super().find(ref)
            return Candidate(
                model_ref=ref, provider=found.provider, account="a", prompt_tokens_max=tokens
            )

    return SmallModel


def told(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def run_worker(
    story: Callable[[House], Any], monkeypatch: pytest.MonkeyPatch, *, rounds: int, tokens: int
) -> None:
    worker = Worker(rounds)  # one for all lives: it remembers how much it has looked
    monkeypatch.setattr("tests.runtime.house.SingleModel", small_model(tokens))
    run_house(story, setup=Setup(model=worker.awake))


TOKENS = 26_000


@pytest.mark.requirement("compaction:checkpoint-is-not-the-end")
def test_a_long_turn_is_shortened_and_goes_on_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await house.prompt("look everywhere")
        await house.rest(60_000)
        [brief] = await house.briefs()
        assert (brief.kind, brief.text) == (BriefKind.RESULT, "looked everywhere")
        events = await house.events()
        assert len(told(events, TurnCompactionApplied)) >= 2
        asked, resumed = told(events, CheckpointRequested), told(events, CheckpointResumed)
        assert [event.delta for event in asked][:2] == [False, True]
        assert len(resumed) == 1, "only the full one was answered in words alone"
        assert any(RESUME in house.model.said(n) for n in range(len(house.model.requests)))
        sizes = [len(msgspec.json.encode(r)) // 4 for r in house.model.requests]
        assert max(sizes) <= TOKENS * 11 // 10, "an estimate may stray by a tenth"

    run_worker(story, monkeypatch, rounds=60, tokens=TOKENS)


@pytest.mark.requirement("compaction:pending-checkpoint-survives-a-crash")
def test_a_crash_anywhere_leaves_the_shortened_turn_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(house: House) -> None:
        await house.prompt("look everywhere")
        while not told(await house.events(), CheckpointRequested):
            await house.rest(5)
            assert not told(await house.events(), TurnEnded)
        before = house.model.requests[-1].conversation
        await house.restart()
        await house.rest(60_000)
        following = next(r for r in house.model.requests if r.conversation[:1] == before[:1])
        assert following.conversation[0] == before[0], "the same recaps, byte for byte"
        [brief] = await house.briefs()
        assert brief.text == "looked everywhere"

    run_worker(story, monkeypatch, rounds=40, tokens=TOKENS)


@pytest.mark.requirement("compaction:history-let-go-in-a-turn-stays-gone")
def test_the_next_turn_reads_a_recap_and_what_is_left_of_the_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(house: House) -> None:
        await house.prompt("good morning")
        await house.rest(60_000)
        await house.prompt("and now?")
        await house.rest(60_000)
        context = await house.store.reads.agents.agent_context(MAIN)
        assert context.compression_epoch >= 1
        assert told(await house.events(), HistoryCompacted)
        last = msgspec.json.encode(house.model.requests[-1].conversation).decode()
        assert "a recap of" in last
        assert "looked everywhere" in last, "the newest rounds of the long turn are still there"
        assert "good morning" in last

    run_worker(story, monkeypatch, rounds=60, tokens=TOKENS)


@pytest.mark.requirement("compaction:baseline-over-budget")
def test_a_round_that_cannot_fit_ends_the_turn_once_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.runtime.test_compaction.WORDS", "x" * 200_000)

    async def story(house: House) -> None:
        await house.prompt("look everywhere")
        await house.rest(60_000)
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.FAILURE
        assert brief.failure is not None
        assert brief.failure.kind == "baseline_over_budget"
        assert "larger context window" in brief.text
        events = await house.events()
        [ended] = told(events, TurnEnded)
        assert ended.terminal is TerminalKind.BASELINE_OVER_BUDGET
        assert len(told(events, TurnBaselineOverBudget)) == 1
        assert len(house.model.requests) == 1

    run_worker(story, monkeypatch, rounds=5, tokens=TOKENS)
