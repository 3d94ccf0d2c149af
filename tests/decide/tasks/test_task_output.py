"""When a look at a task's output may be relied on."""

import msgspec
import pytest

from holon.decide.tasks.commands import RetrievalStatus, is_terminal, retrieval_status_of
from holon.model.tasks import TaskStatus
from tests.support.builders import a_task


@pytest.mark.requirement("task-tools:output-readiness-follows-the-record")
@pytest.mark.parametrize("status", list(TaskStatus))
@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize(
    ("shown", "has_snapshot"),
    [
        ({}, False),
        ({"result_summary": "ended"}, True),
        ({"detail": {"output_paths": ["/out"]}}, True),
        ({"detail": {"output_paths": []}}, False),
    ],
    ids=["nothing", "summary", "file", "no file"],
)
def test_success_needs_an_end_and_something_to_show_for_it(
    status: TaskStatus, shown: dict[str, object], *, waited: bool, has_snapshot: bool
) -> None:
    task = msgspec.structs.replace(a_task(status=status), **shown)
    found = retrieval_status_of(task, waited=waited)
    if is_terminal(status) and has_snapshot:
        assert found is RetrievalStatus.SUCCESS
    else:
        assert found is (RetrievalStatus.TIMEOUT if waited else RetrievalStatus.NOT_READY)
