"""A model that forgets its work item in a long turn is reminded, durably and without rewriting."""

from itertools import pairwise

import msgspec
import pytest

from holon.model.events.event import Event
from holon.model.providers.attempts import TokenUsage
from holon.model.providers.models import ModelRef
from holon.model.turns.conversation import ConversationMessage
from holon.model.work import (
    ReminderObstacle,
    ReminderPolicy,
    WorkReminderInjected,
    WorkReminderSkipped,
)
from holon.ports.providers import Candidate
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side
from tests.support.scripted_provider import ScriptedRule
from tests.support.single_model import SingleModel
from tests.tools.work_item_stage import with_work_tools

QUICK = ReminderPolicy(rounds_count=3, cooldown_rounds_count=4)
LOOK = calls("GetWorkItem", work_item_id="work_1")
UPDATE = calls("UpdateWorkItem", work_item_id="work_1", plan_status="ready")
DONE = calls("CompleteWorkItem", work_item_id="work_1")
FULL_TOKENS = 50_000


def script_of(*rounds: str) -> list[ScriptedRule]:
    """A turn on the item: it looks, updates, and in the end completes it."""
    parts = {"look": LOOK, "update": UPDATE}
    return [rule("Continue the current", *(parts[each] for each in rounds), DONE, says("done"))]


def setup_of(reminders: ReminderPolicy = QUICK) -> Setup:
    setup = with_work_tools()
    setup.reminders = reminders
    return setup


async def work(house: House) -> None:
    """The whole turn, from the item to its end."""
    await house.host.control.pause(MAIN)
    item = await house.host.work.create(MAIN, objective="mend the roof")
    await house.host.work.focus(item.id)
    await house.host.control.resume(MAIN)
    await house.rest(60_000)


def rounds_reminded(told: list[Event]) -> list[int]:
    return [event.after_round for event in told if isinstance(event, WorkReminderInjected)]


def blocks_of(conversation: tuple[ConversationMessage, ...]) -> list[bytes]:
    """Everything the model reads, block by block, in order."""
    return [
        msgspec.json.encode((type(message).__name__, block))
        for message in conversation
        for block in message.blocks
    ]


@pytest.mark.requirement("turn-complete:stale-item-is-brought-up")
@pytest.mark.parametrize(
    ("rounds", "reminded"),
    [
        (["look"] * 2, []),
        (["look"] * 3, [3]),
        (["look"] * 8, [3, 7]),
        (["look", "look", "update", "look", "look"], []),
        (["look", "look", "update", "look", "look", "look"], [6]),
        (["look", "look", "look", "update", "look", "look", "look"], [3, 7]),
    ],
)
def test_a_model_is_reminded_when_it_leaves_its_item_untouched(
    rounds: list[str], reminded: list[int]
) -> None:
    async def story(house: House) -> None:
        await work(house)
        assert rounds_reminded(await house.events()) == reminded
        said = [n for n in range(len(house.model.requests)) if "a reminder" in house.model.said(n)]
        assert said == reminded

    run_house(story, script=script_of(*rounds), setup=setup_of())


@pytest.mark.requirement("turn-complete:reminder-stays-in-the-turn")
def test_the_conversation_only_grows_by_a_reminder() -> None:
    async def story(house: House) -> None:
        await work(house)
        await house.prompt("and now")
        await house.rest(1_000)
        read = [blocks_of(request.conversation) for request in house.model.requests]
        for before, after in pairwise(read):
            assert after[: len(before)] == before
        assert sum(b"a reminder" in block for block in read[-1]) == 2

    script = [rule("and now", says("fine")), *script_of(*["look"] * 8)]
    run_house(story, script=script, setup=setup_of())


@pytest.mark.requirement("turn-complete:reminder-stays-in-the-turn")
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("where", ["remind:", "round:turn_1:4"])
def test_a_crash_around_a_reminder_neither_loses_nor_repeats_it(side: Side, where: str) -> None:
    async def story(house: House) -> None:
        await work(house)
        assert len(house.deaths) == 1
        assert rounds_reminded(await house.events()) == [3, 7]
        read = [blocks_of(request.conversation) for request in house.model.requests]
        assert sum(b"a reminder" in block for block in read[-1]) == 2

    setup = setup_of()
    plan = CrashPlan(where, side)
    setup.wrap = lambda store: CrashStore(store, plan)
    run_house(story, script=script_of(*["look"] * 8), setup=setup)


def test_an_agent_without_a_current_item_is_reminded_of_nothing() -> None:
    async def story(house: House) -> None:
        await house.prompt("look around")
        await house.rest(60_000)
        kinds = {type(event) for event in await house.events()}
        assert not kinds & {WorkReminderInjected, WorkReminderSkipped}

    script = [rule("look around", *[calls("AgentGet")] * 8, says("nothing there"))]
    run_house(story, script=script, setup=setup_of())


@pytest.mark.requirement("turn-complete:reminder-never-fills-the-prompt")
@pytest.mark.parametrize("obstacle", list(ReminderObstacle))
def test_a_reminder_that_does_not_fit_is_skipped_and_the_log_says_why(
    obstacle: ReminderObstacle, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SmallModel(SingleModel):
        def find(self, ref: ModelRef) -> Candidate:
            """Return the one provider, which takes no more than a round has filled already."""
            found = super().find(ref)
            return Candidate(
                model_ref=ref, provider=found.provider, account="a", prompt_tokens_max=FULL_TOKENS
            )

    async def story(house: House) -> None:
        await work(house)
        told = await house.events()
        assert rounds_reminded(told) == []
        skipped = [event for event in told if isinstance(event, WorkReminderSkipped)]
        assert [(each.after_round, each.obstacle) for each in skipped] == [
            (3, obstacle),
            (7, obstacle),
        ]

    full = TokenUsage(input_tokens=FULL_TOKENS)
    (told,) = script_of(*["look"] * 8)
    lines = tuple(msgspec.structs.replace(line, usage=full) for line in told.rounds)
    script = [msgspec.structs.replace(told, rounds=lines)]
    tight = msgspec.structs.replace(QUICK, tokens_max=1)
    if obstacle is ReminderObstacle.PROMPT_BUDGET:
        monkeypatch.setattr("tests.runtime.house.SingleModel", SmallModel)
        tight = QUICK
    run_house(story, script=script, setup=setup_of(tight))


def test_nobody_is_reminded_where_reminders_are_switched_off() -> None:
    async def story(house: House) -> None:
        await work(house)
        assert rounds_reminded(await house.events()) == []

    never = msgspec.structs.replace(QUICK, rounds_count=0)
    run_house(story, script=script_of(*["look"] * 8), setup=setup_of(never))
