"""How much of each section fits, and who gives way."""

import msgspec
import pytest

from holon.model.guidance import (
    InstructionSource,
    LoadedGuidance,
    SkillCatalog,
    SkillEntry,
    SkillScope,
)
from holon.model.limits import PROMPT_TOKENS_DEFAULT
from holon.model.queue import TextBody
from holon.model.turns.transcript import IncomingMessage
from holon.model.work import TodoItem
from holon.prompt.facts import PromptFacts, WorkFacts
from holon.prompt.frame import AssembledPrompt, assemble
from holon.prompt.planner import (
    Outcome,
    PinnedOverBudget,
    PromptBudget,
    SectionReport,
    Share,
    budget_of,
)
from tests.prompt.sample_facts import BUDGET, PLAIN, RICH, instructions, weighed
from tests.support.builders import a_message


def reports(facts: PromptFacts, budget: PromptBudget = BUDGET) -> dict[str, SectionReport]:
    found = assemble(facts, budget)
    assert isinstance(found, AssembledPrompt)
    return {report.name: report for report in found.sections}


def window(tokens: int) -> PromptBudget:
    return PromptBudget(prompt_tokens_max=tokens, tools_tokens=100)


LONG = "Mind the gap. " * 20_000
GUIDED = msgspec.structs.replace(
    PLAIN,
    guidance=LoadedGuidance(files=tuple(instructions(each, LONG) for each in InstructionSource)),
)
CROWDED = msgspec.structs.replace(
    PLAIN,
    skills=SkillCatalog(
        entries=tuple(
            SkillEntry(
                name=f"skill-{number}",
                description="what it does " * 20,
                scope=SkillScope.USER,
                path=f"/skills/{number}/SKILL.md",
            )
            for number in range(600)
        )
    ),
)
HEAVY_ITEM = weighed("work_1", todo_list=tuple(TodoItem(text="x" * 1_000) for _ in range(100)))


@pytest.mark.requirement("prompt:outcomes-are-recorded")
def test_everything_is_full_where_there_is_room() -> None:
    outcomes = {name: report.outcome for name, report in reports(RICH).items()}
    left_out = {name for name, outcome in outcomes.items() if outcome is not Outcome.FULL}
    assert left_out == {"tool_guidance", "recent_messages", "recent_tool_executions"}
    assert reports(RICH)["tool_guidance"].reason == "it is sent as each tool's description"
    assert reports(PLAIN)["current_work_item"].reason == "the agent is on no item"


@pytest.mark.requirement("prompt:outcomes-are-recorded")
def test_guidance_that_does_not_fit_is_cut_and_then_left_out() -> None:
    found = reports(GUIDED)
    first, last = found["agents_md_user_global"], found["agents_md_workspace"]
    assert (first.outcome, last.outcome) == (Outcome.TRUNCATED, Outcome.OMITTED)
    assert 0 < first.sent_bytes < first.full_bytes
    assert last.reason == "its share is used up"
    assert found["verification"].outcome is Outcome.FULL


def test_skills_that_do_not_fit_are_named_only() -> None:
    assert reports(CROWDED)["skills_catalog"].outcome is Outcome.FULL
    tight = reports(CROWDED, window(20_000))["skills_catalog"]
    assert tight.outcome is Outcome.COMPACT
    assert tight.sent_bytes < tight.full_bytes


@pytest.mark.requirement("prompt:pinned-comes-first")
def test_a_pinned_item_is_shortened_and_never_left_out() -> None:
    facts = msgspec.structs.replace(
        PLAIN,
        work=WorkFacts(
            current=HEAVY_ITEM,
            others=tuple(weighed(f"work_{n}", objective="y" * 4_000) for n in range(2, 60)),
            open_count=59,
        ),
    )
    wide = reports(facts)
    assert wide["current_work_item"].outcome is Outcome.COMPACT
    tight = reports(facts, window(6_000))
    assert tight["current_work_item"].outcome in (Outcome.COMPACT, Outcome.TRUNCATED)
    assert tight["current_work_item"].sent_bytes > 0
    assert tight["queued_blocked_work_items"].sent_tokens <= window(6_000).share(Share.TURN)


@pytest.mark.requirement("prompt:pinned-comes-first")
def test_a_message_that_is_too_long_is_cut_to_its_share() -> None:
    long = IncomingMessage(
        message=a_message("msg_9", body=TextBody(text="é" * 600_000)),
        unseen=(a_message("msg_8", body=TextBody(text="short")),),
    )
    facts = msgspec.structs.replace(PLAIN, current_input=long)
    report = reports(facts, window(20_000))["current_input"]
    assert report.outcome is Outcome.TRUNCATED
    assert report.sent_tokens <= window(20_000).share(Share.INPUT)
    found = assemble(facts, window(20_000))
    assert isinstance(found, AssembledPrompt)
    assert found.input_bytes_max is not None


@pytest.mark.requirement("prompt:pinned-over-budget-is-typed")
@pytest.mark.parametrize(
    ("budget", "share"),
    [
        (PromptBudget(prompt_tokens_max=2_000, tools_tokens=6_000), Share.LASTING),
        (PromptBudget(prompt_tokens_max=1_000, tools_tokens=0), Share.LASTING),
    ],
)
def test_what_must_be_sent_and_does_not_fit_is_a_typed_failure(
    budget: PromptBudget, share: Share
) -> None:
    found = assemble(RICH, budget)
    assert isinstance(found, PinnedOverBudget)
    assert found.share is share
    assert found.needed_tokens > found.share_tokens == budget.share(share)
    assert "identity" in found.sections


def test_many_unseen_messages_may_be_too_much_by_their_labels_alone() -> None:
    crowd = IncomingMessage(
        message=a_message("msg_0", body=TextBody(text="x" * 50_000)),
        unseen=tuple(a_message(f"msg_{n}", body=TextBody(text="y")) for n in range(1, 200)),
    )
    found = assemble(msgspec.structs.replace(PLAIN, current_input=crowd), window(10_000))
    assert isinstance(found, PinnedOverBudget)
    assert (found.share, found.sections) == (Share.INPUT, ("current_input",))


@pytest.mark.requirement("prompt:unknown-model-has-a-usable-budget")
def test_a_model_nobody_knows_gets_a_usable_budget() -> None:
    budget = budget_of(None, tools_bytes=24_000)
    assert budget.prompt_tokens_max == PROMPT_TOKENS_DEFAULT
    assert budget.tools_tokens == 6_000
    assert isinstance(assemble(RICH, budget), AssembledPrompt)
    assert budget_of(9_000, tools_bytes=0).prompt_tokens_max == 9_000


@pytest.mark.requirement("prompt-frame:key-survives-turn-scoped-change")
@pytest.mark.parametrize("tokens", [6_000, 12_000, 40_000, 128_000])
def test_a_crowded_turn_never_changes_what_lasts(tokens: int) -> None:
    quiet = msgspec.structs.replace(GUIDED, skills=CROWDED.skills)
    busy = msgspec.structs.replace(
        quiet,
        work=WorkFacts(current=HEAVY_ITEM, open_count=1),
        results=RICH.results * 8,
        wake=RICH.wake,
        current_input=IncomingMessage(message=a_message("m", body=TextBody(text="z" * 900_000))),
    )
    first, later = assemble(quiet, window(tokens)), assemble(busy, window(tokens))
    assert isinstance(first, AssembledPrompt)
    assert isinstance(later, AssembledPrompt)
    assert first.frame.cache is not None
    assert later.frame.cache is not None
    assert first.frame.cache.prompt_cache_key == later.frame.cache.prompt_cache_key
