"""Turn sections of the prompt: waiting results, earlier briefs, and the reason for the turn.

Owns:  the text of unread results, of briefs the conversation no longer shows, and of why the agent
       was woken.
Rule 1: what the conversation contains is not repeated: a plain turn has no such section.
"""

from holon.decide.text.fencing import disarmed, fenced, quoted
from holon.model.limits import PROMPT_BRIEF_CHARS_MAX, PROMPT_RESULT_BYTES_MAX
from holon.model.queue import AuthorityClass
from holon.model.tasks import TaskRecord
from holon.prompt.agents import prompt_text
from holon.prompt.facts import PromptFacts

_RESULTS_HEAD = "## Results that have arrived and wait in your queue"


def constrained_repair(facts: PromptFacts) -> str | None:
    """The instructions for a turn that was interrupted."""
    is_resumed = facts.wake is not None and facts.wake.resume_count > 0
    return prompt_text("constrained_repair") if is_resumed else None


def latest_result(facts: PromptFacts) -> str | None:
    """Results of tasks that no turn has read yet."""
    if not facts.results:
        return None
    parts = [f"{_result_line(task)}\n{_result_body(task)}" for task in facts.results]
    return "\n".join([_RESULTS_HEAD, *parts])


def compact_result(facts: PromptFacts) -> str | None:
    """The same, a line each."""
    if not facts.results:
        return None
    return "\n".join([_RESULTS_HEAD, *(_result_line(task) for task in facts.results)])


def recent_briefs(facts: PromptFacts) -> str | None:
    """Briefs to the operator from before the conversation."""
    if not facts.briefs:
        return None
    lines = [
        f"- {brief.created_at.isoformat(timespec='minutes')} {brief.kind}:"
        f" {disarmed(quoted(brief.text))[:PROMPT_BRIEF_CHARS_MAX]}"
        for brief in facts.briefs
    ]
    return "\n".join(["## What you reported earlier", *lines])


def continuation(facts: PromptFacts) -> str | None:
    """Why the agent is awake, where the message alone does not say it."""
    wake = facts.wake
    if wake is None:
        return None
    lines: list[str] = []
    if wake.prior_waiting_reason is not None:
        lines.append(f"before this turn you were waiting: {wake.prior_waiting_reason}")
    if wake.last_failure is not None:
        lines.append(f"your last turn failed: {disarmed(quoted(wake.last_failure))}")
    if wake.resume_count:
        lines.append(f"this turn was cut off and taken up again: {wake.resume_count} times so far")
    if not lines:
        return None
    trigger = [f"woken by: {wake.trigger_kind}"] if wake.trigger_kind is not None else []
    return "\n".join(["## Why you are awake", *trigger, *lines])


def _result_line(task: TaskRecord) -> str:
    exited = "" if task.exit_status is None else f", exit status {task.exit_status}"
    about = "" if task.work_item_id is None else f", for {task.work_item_id}"
    named = disarmed(quoted(task.summary or task.kind.value))[:PROMPT_BRIEF_CHARS_MAX]
    return f"- {task.id} ({task.status}{exited}{about}): {named}"


def _result_body(task: TaskRecord) -> str:
    shown = fenced(
        task.result_summary or "(nothing was said)",
        content_id=f"{task.id}/result",
        body_bytes_max=PROMPT_RESULT_BYTES_MAX,
    )
    return f"authority: {AuthorityClass.EXTERNAL_EVIDENCE}\n{shown}"
