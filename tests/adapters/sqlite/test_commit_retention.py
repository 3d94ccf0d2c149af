"""Ids and keys are forgotten as fast as they come in, and no sooner than they may be repeated."""

from pathlib import Path

import pytest

from holon.decide.events.audit import audited
from holon.decide.queue.idempotency import keyed_request
from holon.model.commits import (
    AppendBrief,
    Applied,
    CreateTrigger,
    DeliverTrigger,
    QueueMessage,
    SetModelOverride,
)
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import (
    COMMIT_IDS_KEPT_MS_MIN,
    DAY_MS,
    IDEMPOTENCY_KEPT_MS_MIN,
    MEMORY_TOMBSTONES_KEPT_MS,
)
from holon.model.values import AgentId
from holon.model.wake import WakeDisposition
from tests.adapters.sqlite.history_rows import LATER, History
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_hint,
    a_message,
    a_trigger,
    an_admission,
    an_agent,
    moment,
)

FEW = RetentionPolicy(batch_count=10)
IDS_FORGOTTEN = moment(COMMIT_IDS_KEPT_MS_MIN)
KEYS_FORGOTTEN = moment(IDEMPOTENCY_KEPT_MS_MIN)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "test.sqlite")


def a_birth_id(agent_id: str) -> str:
    return f"control:{keyed_request(AgentId(agent_id), 'k', content='')}"


def test_a_birth_is_remembered_as_long_as_its_key(history: History) -> None:
    birth = a_commit(a_birth_id("fresh"), an_agent("fresh"))
    history.writer.apply_group([audited(birth)])
    history.prune(FEW, now=moment(IDEMPOTENCY_KEPT_MS_MIN - 1))
    assert history.writer.apply_group([audited(birth)]).results == [Applied(replayed=True)]
    history.prune(FEW, now=KEYS_FORGOTTEN)
    assert history.count("commits") == 0


def test_births_that_are_remembered_hold_up_nothing_else(history: History) -> None:
    for n in range(40):
        history.make(a_birth_id(f"agent_{n}"), an_agent(f"agent_{n}"))
    history.writer.apply_group([audited(an_admission(a_message(f"msg_{n}"))) for n in range(40)])
    history.make("control:req_1", SetModelOverride(agent_id=MAIN, model=None))
    history.prune(FEW, now=IDS_FORGOTTEN)
    assert history.count("commits") == 40
    assert history.count("commits where commit_id glob 'control:req_*'") == 40


def test_one_pass_forgets_every_commit_that_is_old(history: History) -> None:
    history.writer.apply_group([audited(an_admission(a_message(f"msg_{n}"))) for n in range(100)])
    history.prune(FEW, now=IDS_FORGOTTEN)
    assert history.count("commits") == 0


def test_one_pass_forgets_every_delivery_that_is_old(history: History) -> None:
    history.make("trigger", CreateTrigger(trigger=a_trigger()))
    for n in range(35):
        delivered = DeliverTrigger(
            hint=a_hint(source_key="trigger:trig_1", revision=n + 1),
            external_trigger_id=a_trigger().external_trigger_id,
            epoch=1,
            disposition=WakeDisposition.TRIGGERED,
            delivery_key=f"{n:064}",
            content_digest="1" * 64,
        )
        history.make(f"deliver:{n}", delivered)
    history.prune(FEW, now=IDS_FORGOTTEN)
    assert history.count("trigger_deliveries") == 35
    history.prune(FEW, now=KEYS_FORGOTTEN)
    assert history.count("trigger_deliveries") == 0


def test_one_pass_forgets_every_mark_of_what_went_long_ago(history: History) -> None:
    for n in range(35):
        history.make(f"brief:{n}", AppendBrief(brief=a_brief(f"brief_{n}")))
    history.prune(FEW, now=LATER)
    assert history.count("memory_sources where gone = 1") == 35
    history.prune(FEW, now=moment(200 * DAY_MS + MEMORY_TOMBSTONES_KEPT_MS))
    assert history.count("memory_sources where gone = 1") == 0


def test_commits_from_a_clock_in_the_future_go_when_later_ones_do(history: History) -> None:
    ahead = moment(3_650 * DAY_MS)
    for n in range(35):
        history.make(f"ahead:{n}", QueueMessage(message=a_message(f"ahead_{n}")), at=ahead)
    for n in range(35):
        history.make(f"back:{n}", QueueMessage(message=a_message(f"back_{n}")), at=START)
    history.prune(FEW, now=moment(COMMIT_IDS_KEPT_MS_MIN - 1))
    assert history.count("commits") == 71
    history.prune(FEW, now=IDS_FORGOTTEN)
    assert history.count("commits") == 0


def test_a_clock_that_was_set_back_makes_no_commit_old(history: History) -> None:
    for n in range(35):
        history.make(f"now:{n}", QueueMessage(message=a_message(f"msg_{n}")), at=LATER)
    history.prune(FEW, now=moment(200 * DAY_MS - 1))
    assert history.count("commits") == 35
