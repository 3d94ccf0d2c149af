"""Work items as an agent handles them in its own turns, through the whole runtime."""

import msgspec
import pytest

from holon.decide.work.items import WorkItemEdit
from holon.model.work import CompletionReportPromoted, WorkItemState
from holon.projections.events.presented import OperatorEvent
from tests.projections.presented import present_all
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.support.builders import MAIN
from tests.support.scripted_provider import ScriptedCall, ScriptedRound
from tests.tools.work_item_stage import item_in, receipts, with_work_tools


def completes(*item_ids: str, text: str = "") -> ScriptedRound:
    """A round that completes items, with or without a report."""
    done = tuple(
        ScriptedCall(name="CompleteWorkItem", input={"work_item_id": each}) for each in item_ids
    )
    return ScriptedRound(text=text, calls=done)


async def promoted_count(house: House) -> int:
    """How many reports became the result of an item."""
    return sum(isinstance(event, CompletionReportPromoted) for event in await house.events())


@pytest.mark.requirement("work-item-tools:report-is-promoted")
def test_the_text_beside_the_call_becomes_the_items_result() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        done = await item_in(house, item.id)
        assert (done.state, done.result_summary) == (WorkItemState.COMPLETED, "All deployed.")
        assert [brief.text for brief in await house.briefs()] == ["All deployed."]
        assert await promoted_count(house) == 1
        assert "warning" not in receipts(house)[0]["result"]
        await house.prompt("and now")
        await house.rest(1_000)
        view = receipts(house)[-1]["result"]["work_item"]
        assert view["completion_report"]["text"] == "All deployed."
        assert (await house.agent()).focus.current_work_item_id is None

    run_house(
        story,
        script=[
            rule("and now", calls("GetWorkItem", work_item_id="work_1"), says("see above")),
            rule("deploy", completes("work_1", text="All deployed."), says("bye")),
        ],
        setup=with_work_tools(),
    )


@pytest.mark.requirement("turn-complete:missing-report-is-an-event")
@pytest.mark.requirement("work-item-tools:missing-report-is-told")
def test_a_completion_without_words_is_told_to_the_model_and_leaves_no_report() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        done = await item_in(house, item.id)
        assert (done.state, done.result_summary) == (WorkItemState.COMPLETED, None)
        assert await promoted_count(house) == 0
        warning = receipts(house)[0]["result"]["warning"]
        assert warning["kind"] == "no_completion_report"
        told = [msgspec.to_builtins(event) for event in await house.events()]
        [event] = [e for e in told if e["kind"] == "work_item_completion_report_warning"]
        assert (event["work_item_id"], event["problem"]) == (item.id, "no_text")

    script = [rule("deploy", completes("work_1"), says("bye"))]
    run_house(story, script=script, setup=with_work_tools())


@pytest.mark.requirement("work-item-tools:missing-report-is-told")
def test_one_answer_that_completes_two_items_keeps_its_text_for_neither() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.create(MAIN, objective="later")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        assert await promoted_count(house) == 0
        first, second = receipts(house)
        for told in (first, second):
            assert told["result"]["work_item"]["state"] == "completed"
            assert "warning" in told["result"]

    script = [rule("deploy", completes("work_1", "work_2", text="Both done."), says("bye"))]
    run_house(story, script=script, setup=with_work_tools())


@pytest.mark.requirement("turn-complete:report-of-an-item-of-the-same-turn")
def test_an_agent_opens_picks_and_ends_an_item_in_one_turn() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        created, picked, done = receipts(house)
        assert created["result"]["work_item"]["focus"] == "queued"
        assert created["notes"]
        assert picked["result"]["work_item"]["is_current"] is True
        assert "warning" not in done["result"]
        assert (await item_in(house, "work_1")).result_summary == "Deployed."
        assert await promoted_count(house) == 1
        [brief] = await house.briefs()
        assert (brief.text, brief.work_item_id) == ("Deployed.", "work_1")
        kinds = [msgspec.to_builtins(event)["kind"] for event in await house.events()]
        assert "work_item_picked" in kinds
        assert "work_item_focus_released" in kinds

    run_house(
        story,
        script=[
            rule(
                "begin",
                calls("CreateWorkItem", goal="deploy"),
                calls("PickWorkItem", work_item_id="work_1"),
                completes("work_1", text="Deployed."),
                says("bye"),
            )
        ],
        setup=with_work_tools(),
    )


@pytest.mark.requirement("turn-complete:report-of-an-item-of-the-same-turn")
@pytest.mark.requirement("turn-complete:each-round-may-report")
@pytest.mark.requirement("work-done:a-brief-for-each-item")
def test_items_created_and_ended_one_after_the_other_each_keep_their_report() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        told = [(await item_in(house, f"work_{n}")).result_summary for n in (1, 2)]
        assert told == ["Dug.", "Planted."]
        briefs = [(each.work_item_id, each.text) for each in await house.briefs()]
        assert briefs == [("work_1", "Dug."), ("work_2", "Planted.")]
        kinds = [msgspec.to_builtins(event)["kind"] for event in await house.events()]
        assert kinds.count("work_item_completion_report_promoted") == 2
        assert "work_item_completion_report_warning" not in kinds

    run_house(
        story,
        script=[
            rule(
                "begin",
                calls("CreateWorkItem", objective="dig"),
                calls("CreateWorkItem", objective="plant"),
                completes("work_1", text="Dug."),
                completes("work_2", text="Planted."),
                says("bye"),
            )
        ],
        setup=with_work_tools(),
    )


@pytest.mark.requirement("turn-complete:each-round-may-report")
def test_a_second_completion_that_fails_leaves_the_report_to_the_first() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        assert (await item_in(house, item.id)).result_summary == "Done."
        assert "unless only one" in receipts(house)[0]["result"]["warning"]["message"]

    script = [rule("deploy", completes("work_1", "work_nowhere", text="Done."), says("bye"))]
    run_house(story, script=script, setup=with_work_tools())


async def told(house: House) -> list[OperatorEvent]:
    """What the operator is shown of the agent's events."""
    after = (await house.store.reads.events.event_bounds(MAIN))[0]
    return present_all(await house.store.reads.events.events_after(MAIN, after, limit=1_000))


@pytest.mark.requirement("turn-complete:cut-off-turn-keeps-what-it-did")
@pytest.mark.requirement("work-done:also-when-the-turn-fails")
def test_a_turn_the_operator_ends_keeps_the_report_it_gave() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        await house.host.control.abort_run(MAIN)
        await house.rest(1_000)
        assert (await item_in(house, item.id)).result_summary == "Deployed."
        report, ended = await house.briefs()
        assert (report.kind, report.text, report.work_item_id) == ("result", "Deployed.", item.id)
        assert ended.kind == "failure"
        events = await told(house)
        briefs = [each for each in events if each.source_event_kind == "brief_created"]
        assert [each.visibility for each in briefs] == ["work_done", "turn_result"]
        last = (await house.agent()).last_terminal
        assert last is not None
        assert (last.kind, last.last_assistant_message) == ("aborted", "Deployed.")

    slow = says("bye", after_ms=60_000)
    script = [rule("deploy", completes("work_1", text="Deployed."), slow)]
    run_house(story, script=script, setup=with_work_tools())


@pytest.mark.requirement("turn-complete:no-completion-argument")
def test_a_report_given_as_an_argument_is_not_taken_for_one() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        assert (await item_in(house, item.id)).result_summary is None
        [told] = receipts(house)
        assert told["result"]["warning"]["kind"] == "no_completion_report"
        assert any("there is no field" in note for note in told["notes"])

    argued = calls("CompleteWorkItem", work_item_id="work_1", result_summary="All deployed.")
    script = [rule("deploy", argued, says("bye"))]
    run_house(story, script=script, setup=with_work_tools())


@pytest.mark.requirement("work-item-tools:blocker-brings-a-recheck")
def test_a_blocked_item_is_brought_up_again_when_its_reminder_comes() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(30_000)
        assert len(house.model.requests) == 2
        await house.rest(31_000)
        assert len(house.model.requests) == 4
        assert (await item_in(house, item.id)).state is WorkItemState.COMPLETED

    blocks = calls("UpdateWorkItem", work_item_id="work_1", blocked_by="CI", recheck_after="60000")
    run_house(
        story,
        script=[
            rule("waits for CI", completes("work_1", text="CI is green."), says("bye")),
            rule("CI", completes("work_1", text="CI is green."), says("bye")),
            rule("deploy", blocks, says("I wait")),
        ],
        setup=with_work_tools(),
    )


@pytest.mark.parametrize("name", ["PickWorkItem", "UpdateWorkItem", "CompleteWorkItem"])
def test_a_change_that_overtakes_the_call_is_planned_again_from_fresh_rows(name: str) -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.edit(item.id, WorkItemEdit(), blocked_by="rain")
        await house.prompt("begin")
        await house.rest(100)
        await house.host.work.edit(item.id, WorkItemEdit(), blocked_by=None)
        await house.rest(2_000)
        told = receipts(house)[0]
        assert told["ok"] is True
        assert "blocked_by" not in told["result"]["work_item"]
        if name != "CompleteWorkItem":
            await house.host.work.complete(item.id)

    more = {"objective": "deploy again"} if name == "UpdateWorkItem" else {}
    slow = calls(name, after_ms=500, work_item_id="work_1", **more)
    script = [rule("begin", slow, says("ok")), rule("deploy", says("ok"))]
    run_house(story, script=script, setup=with_work_tools())
