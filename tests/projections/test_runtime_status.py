"""The runtime's health, as an operator asks after it."""

import msgspec
import pytest

from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.events.reads import ActivityCounts
from holon.projections.runtime_status import (
    ActivitySummary,
    FailurePhase,
    LastFailure,
    RuntimeState,
    RuntimeStatus,
    activity_summary,
    newest_failure,
    turn_failure,
)
from tests.support.builders import a_brief, moment


@pytest.mark.requirement("console:activity-has-three-states")
@pytest.mark.parametrize(
    ("counts", "state"),
    [
        (ActivityCounts(), RuntimeState.IDLE),
        (ActivityCounts(active_agent_count=4), RuntimeState.IDLE),
        (ActivityCounts(waiting_agent_count=1), RuntimeState.WAITING),
        (ActivityCounts(active_task_count=1), RuntimeState.WAITING),
        (
            ActivityCounts(processing_agent_count=1, waiting_agent_count=5),
            RuntimeState.PROCESSING,
        ),
    ],
)
def test_processing_beats_waiting_beats_idle(counts: ActivityCounts, state: RuntimeState) -> None:
    assert activity_summary(counts).state is state


def test_an_idle_runtime_says_every_figure() -> None:
    assert msgspec.to_builtins(activity_summary(ActivityCounts())) == {
        "state": "idle",
        "active_agent_count": 0,
        "active_task_count": 0,
        "processing_agent_count": 0,
        "waiting_agent_count": 0,
    }


@pytest.mark.requirement("console:status-is-read-across-versions")
def test_a_status_is_read_although_the_other_side_knows_more_or_less() -> None:
    older = b'{"ok":true,"healthy":true,"pid":7,"home_dir":"/h","socket_path":"/s"}'
    status = msgspec.json.decode(older, type=RuntimeStatus)
    assert (status.pid, status.activity) == (7, None)
    newer = older[:-1] + b',"activity":{"state":"idle","dreams":3},"mood":"good"}'
    assert msgspec.json.decode(newer, type=RuntimeStatus).activity == ActivitySummary()


def test_a_failed_turn_is_the_last_failure_until_something_newer_fails() -> None:
    failure = FailureArtifact(
        category=FailureCategory.TRANSPORT, kind="timeout", summary="no answer"
    )
    turn = turn_failure(msgspec.structs.replace(a_brief(), failure=failure))
    assert (turn.summary, turn.phase) == ("no answer", FailurePhase.RUNTIME_TURN)
    assert "holon transcript" in (turn.detail_hint or "")
    later = LastFailure(occurred_at=moment(5), summary="port taken", phase=FailurePhase.STARTUP)
    assert newest_failure(turn, None, later) is later
    assert newest_failure(None) is None
