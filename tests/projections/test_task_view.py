"""Tasks as they are shown."""

import msgspec
import pytest

from holon.decide.tasks.commands import RetrievalStatus
from holon.decide.text.bounded import BoundedText
from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.queue import TrustLevel
from holon.model.tasks import CommandRecovery, CommandTaskSpec, TaskStatus
from holon.projections.tasks import (
    OutputExcerpt,
    input_target_of,
    list_view,
    output_view,
    status_view,
)
from tests.support.builders import a_task

TASK = msgspec.structs.replace(
    a_task(),
    summary="make",
    detail={"run_id": "r", "output_paths": ["/out", "/err"]},
    recovery=CommandRecovery(
        summary="make",
        spec=CommandTaskSpec(cmd="make", workdir="/w"),
        trust=TrustLevel.TRUSTED_OPERATOR,
    ),
)
ENDED = msgspec.structs.replace(
    TASK,
    status=TaskStatus.FAILED,
    result_summary="make: ended with exit status 2\n\nall the output",
    exit_status=2,
    failure=FailureArtifact(category=FailureCategory.TASK, kind="command_failed", summary="no"),
)


@pytest.mark.requirement("task-tools:status-is-lifecycle-without-output")
def test_a_lifecycle_snapshot_has_no_output_in_it() -> None:
    shown = status_view(ENDED)
    assert "all the output" not in str(shown)
    assert shown["command"]["result_summary"] == "make: ended with exit status 2"
    assert shown["command"]["output_path"] == "/out"
    assert shown["wait_policy"] == "background"


def test_a_task_of_another_kind_has_no_command() -> None:
    assert "command" not in status_view(a_task())
    assert input_target_of(a_task()) is None


def test_a_list_counts_what_it_shows() -> None:
    nothing = list_view([], [], task_count=0)
    assert nothing == {"tasks": [], "task_count": 0, "recently_ended": []}
    listed = list_view([TASK], [ENDED], task_count=9)
    assert listed["task_count"] == 9
    assert listed["tasks"] == [status_view(TASK)]
    assert listed["recently_ended"] == [status_view(ENDED)]


def test_an_output_snapshot_names_files_and_failure() -> None:
    look = OutputExcerpt(shown=BoundedText(text="cut", truncated=True))
    shown = output_view(ENDED, RetrievalStatus.SUCCESS, look)
    task = shown["task"]
    assert shown["retrieval_status"] == "success"
    assert (task["output_preview"], task["output_truncated"]) == ("cut", True)
    assert task["artifacts"] == [{"path": "/out"}, {"path": "/err"}]
    assert task["failure_artifact"]["kind"] == "command_failed"


@pytest.mark.requirement("tool-shapes:output-artifact-is-the-combined-one")
@pytest.mark.parametrize(
    ("combined", "names", "index"),
    [
        ("/out", ["/out", "/err"], 0),
        ("/err", ["/out", "/err"], 1),
        ("/combined", ["/out", "/err", "/combined"], 2),
        (None, ["/out", "/err"], None),
    ],
)
def test_the_output_artifact_is_the_file_that_holds_all_output(
    combined: str | None, names: list[str], index: int | None
) -> None:
    look = OutputExcerpt(shown=BoundedText(text="x"), combined_path=combined)
    task = output_view(ENDED, RetrievalStatus.SUCCESS, look)["task"]
    assert [each["path"] for each in task["artifacts"]] == names
    assert task.get("output_artifact") == index


def test_without_files_there_is_no_artifact_to_point_at() -> None:
    look = OutputExcerpt(shown=BoundedText(text=""))
    shown = output_view(a_task(), RetrievalStatus.NOT_READY, look)
    assert "output_artifact" not in shown["task"]
    assert "failure_artifact" not in shown["task"]
