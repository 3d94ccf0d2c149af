"""Memory sections of the prompt: working memory, its changes, and relevant episodes.

Owns:  the text of these three sections.
Rule 1: memory is the runtime's digest of recorded evidence: it is rendered on single lines, so that
        quoted text cannot imitate anything else.
"""

from collections.abc import Sequence

from holon.decide.text.fencing import disarmed, quoted
from holon.model.limits import PROMPT_EPISODE_CHARS_MAX, PROMPT_MEMORY_LINES_COUNT_MAX
from holon.model.memory.records import EpisodeRecord, WorkingMemory
from holon.prompt.facts import PromptFacts


def working_memory(facts: PromptFacts) -> str | None:
    """The agent's working memory."""
    memory = facts.memory.base
    if memory is None:
        return None
    lines = list(_memory_lines(memory))
    return "\n".join(["## Working memory", *lines]) if lines else None


def working_memory_delta(facts: PromptFacts) -> str | None:
    """The change of working memory since the lasting version."""
    delta = facts.memory.delta
    if delta is None or not delta.summary_lines:
        return None
    head = f"## Working memory, changed since (revision {delta.to_revision}, {delta.reason})"
    shown = delta.summary_lines[:PROMPT_MEMORY_LINES_COUNT_MAX]
    return "\n".join([head, *(f"- {_said(line)}" for line in shown)])


def relevant_episodes(facts: PromptFacts) -> str | None:
    """Relevant episodes of earlier work."""
    if not facts.episodes:
        return None
    return "\n".join(["## Earlier work", *(_episode(each) for each in facts.episodes)])


def _memory_lines(memory: WorkingMemory) -> list[str]:
    lines: list[str] = []
    if memory.current_work_item_id is not None:
        lines.append(f"work item: {memory.current_work_item_id}")
    if memory.objective:
        lines.append(f"objective: {_said(memory.objective)}")
    if memory.work_summary:
        lines.append(f"summary: {_said(memory.work_summary)}")
    for name, entries in (
        ("scope", memory.scope_hints),
        ("plan", memory.plan),
        ("todo", memory.todo_list),
        ("files", memory.working_set_files),
        ("decisions", memory.recent_decisions),
        ("follow-ups", memory.pending_followups),
        ("waiting on", memory.waiting_on),
    ):
        lines.extend(_listed(name, entries))
    return lines


def _listed(name: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    shown = entries[:PROMPT_MEMORY_LINES_COUNT_MAX]
    more = [f"- and {len(entries) - len(shown)} more"] if len(entries) > len(shown) else []
    return [f"{name}:", *(f"- {_said(each)}" for each in shown), *more]


def _episode(episode: EpisodeRecord) -> str:
    turns = f"turns {episode.start_turn_index}–{episode.end_turn_index}"
    about = f", {episode.work_item_id}" if episode.work_item_id is not None else ""
    return f"- {turns}{about}: {_said(episode.summary)}"


def _said(text: str) -> str:
    return disarmed(quoted(text))[:PROMPT_EPISODE_CHARS_MAX]
