"""How many agents, work items, timers and background commands there may be.

Owns:  the refusals for what would be one too many.
Rule 1: a quota is a bound on what stands at one time; ending something makes room.
"""

from holon.model.limits import (
    AGENTS_COUNT_MAX,
    TIMERS_ACTIVE_COUNT_MAX,
    WORK_ITEMS_OPEN_COUNT_MAX,
)
from holon.model.refusal import Refusal, RefusalCode
from holon.model.task import TaskQuota


def agent_quota(count: int) -> Refusal | None:
    """Decline one more agent, given how many there are."""
    if count < AGENTS_COUNT_MAX:
        return None
    return _reached(f"there are {AGENTS_COUNT_MAX} agents already", "use one of them")


def work_item_quota(open_count: int) -> Refusal | None:
    """Decline one more work item, given how many the agent has open."""
    if open_count < WORK_ITEMS_OPEN_COUNT_MAX:
        return None
    return _reached(
        f"the agent has {WORK_ITEMS_OPEN_COUNT_MAX} open work items",
        "complete some of them first",
    )


def timer_quota(active_count: int) -> Refusal | None:
    """Decline one more timer, given how many of the agent are active."""
    if active_count < TIMERS_ACTIVE_COUNT_MAX:
        return None
    return _reached(
        f"the agent has {TIMERS_ACTIVE_COUNT_MAX} active timers", "cancel some of them first"
    )


def task_quota(quota: TaskQuota, *, of_agent: int, of_all: int) -> Refusal | None:
    """Decline one more command that may become a task, given how many run."""
    if of_agent >= quota.per_agent_count_max:
        return _reached(
            f"{of_agent} commands of the agent run in the background already"
            f" (runtime.tasks.per_agent_max is {quota.per_agent_count_max})",
            "end some of them with TaskStop or wait for them; ExecCommandBatch still runs short"
            " commands to their end",
        )
    if of_all >= quota.count_max:
        return _reached(
            f"{of_all} commands of all agents run in the background already"
            f" (runtime.tasks.max is {quota.count_max})",
            "wait until some of them have ended; ExecCommandBatch still runs short commands to"
            " their end",
        )
    return None


def _reached(message: str, hint: str) -> Refusal:
    return Refusal(code=RefusalCode.QUOTA_REACHED, message=message, hint=hint)
