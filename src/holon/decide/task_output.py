"""Whether a task's output may be relied on.

Owns:  the retrieval status of a look at a task's output.
Rule 1: the record decides. `success` means the end is on record together with something to show
        for it: files of its output, or a result in words. A terminal status alone is not enough.
Rule 2: a look that waited in vain is a `timeout`; one that did not wait is `not_ready`.
"""

from enum import StrEnum

from holon.decide.command_promotion import output_paths_of
from holon.decide.task_lifecycle import is_terminal
from holon.model.task import TaskRecord


class RetrievalStatus(StrEnum):
    """How far a look at a task's output got."""

    SUCCESS = "success"
    TIMEOUT = "timeout"
    NOT_READY = "not_ready"


def retrieval_status_of(task: TaskRecord, *, waited: bool) -> RetrievalStatus:
    """Say whether the task's output is final."""
    has_snapshot = task.result_summary is not None or bool(output_paths_of(task))
    if is_terminal(task.status) and has_snapshot:
        return RetrievalStatus.SUCCESS
    return RetrievalStatus.TIMEOUT if waited else RetrievalStatus.NOT_READY
