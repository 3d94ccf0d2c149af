"""Agent sections of the prompt: identity, execution place, guidance, templates and skills.

Owns:  the text of the agent, ingress, execution, guidance, template and skill sections; loading
       prompt/texts/*.md, since prose never lives in Python strings.
Rule 1: nothing here changes from turn to turn by itself: no counters, no timestamps.
Rule 2: guidance is fenced; characters its author tried to hide in it are made visible.
"""

import pkgutil
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

import msgspec

from holon.decide.text.fencing import fenced, quoted
from holon.decide.wake.triggers import WARNING
from holon.model.agents import Ownership
from holon.model.guidance import InstructionSource, LoadedInstructions, SkillEntry
from holon.model.limits import (
    PROMPT_SKILL_CHARS_MAX,
    PROMPT_SKILLS_DESCRIBED_COUNT_MAX,
    PROMPT_SKILLS_NAMED_COUNT_MAX,
    PROMPT_TEMPLATES_COUNT_MAX,
    SKILL_DESCRIPTION_CHARS_MAX,
)
from holon.model.workspaces import ExecutionPolicy
from holon.prompt.facts import PromptFacts

_DESCRIPTIONS_KEPT_COUNT: Final = 1_024  # a skill is described the same way in every prompt
_WHOSE: Final = {
    InstructionSource.USER_GLOBAL: "the operator, for all agents",
    InstructionSource.AGENT: "this agent",
    InstructionSource.WORKSPACE: "the workspace",
}


@cache
def prompt_text(name: str) -> str:
    """Return one text of the prompt."""
    text = pkgutil.get_data("holon.prompt", f"texts/{name}.md")
    assert text is not None, "the texts are part of the package"
    return text.decode("utf-8").strip()


def agent(facts: PromptFacts) -> str:
    """The agent's identity."""
    identity = facts.identity
    lines = [
        "## You",
        f"agent_id: {identity.agent_id}",
        f"kind: {identity.kind}, {identity.visibility}, {identity.ownership}",
        f"agent_home: {quoted(facts.agent_home)}",
    ]
    if identity.parent_agent_id is not None:
        lines.append(f"parent: {identity.parent_agent_id}")
    return "\n".join(lines)


def external_ingress(facts: PromptFacts) -> str | None:
    """The agent's external trigger."""
    trigger, url = facts.trigger, facts.trigger_url
    if trigger is None or url is None:
        return None
    return (
        "## External trigger\n"
        f"external_trigger_id: {trigger.external_trigger_id} ({trigger.status},"
        f" {trigger.delivery_mode})\n"
        f"trigger_url: {url}\n"
        f"A POST to it wakes you with what was sent. {WARNING}"
    )


def execution_environment(facts: PromptFacts) -> str:
    """The agent's execution place, and which boundaries are enforced."""
    place, profile = facts.execution, facts.execution.profile
    lines = [
        "## Execution environment",
        f"workspace_id: {quoted(place.workspace_id)}",
        f"workspace_anchor: {quoted(place.workspace_anchor)}",
        f"execution_root: {quoted(place.execution_root)}",
        f"cwd: {quoted(place.cwd)}",
        f"backend: {profile.backend}"
        + ("" if profile.process_execution_exposed else "; commands cannot be run"),
        *policy_lines(place.policy),
    ]
    return "\n".join(lines)


def policy_lines(policy: ExecutionPolicy) -> list[str]:
    """Return the boundaries by level of enforcement."""
    held: dict[str, list[str]] = {}
    for name, level in msgspec.structs.asdict(policy).items():
        held.setdefault(str(level), []).append(name)
    return [f"{level}: {', '.join(names)}" for level, names in held.items()]


def worktree_session(facts: PromptFacts) -> str | None:
    """The worktree the agent entered."""
    session = facts.worktree
    if session is None:
        return None
    return (
        "## Worktree\n"
        f"path: {quoted(session.worktree_path)}, branch {quoted(session.worktree_branch)}\n"
        f"entered from: {quoted(session.original_cwd)}, branch {quoted(session.original_branch)}"
    )


def delegated_task(facts: PromptFacts) -> str | None:
    """The instructions for an agent that works for another one."""
    is_child = facts.identity.ownership is Ownership.PARENT_SUPERVISED
    return prompt_text("delegated_task") if is_child else None


def guidance_of(source: InstructionSource) -> Callable[[PromptFacts], str | None]:
    """Return the renderer of one source's guidance."""

    def rendered(facts: PromptFacts) -> str | None:
        texts = [_guidance(each) for each in facts.guidance.files if each.source is source]
        return "\n\n".join(texts) or None

    return rendered


def _guidance(loaded: LoadedInstructions) -> str:
    cut = " (its beginning)" if loaded.truncated else ""
    content_id = f"{loaded.path}:{loaded.sha256}"
    return f"## Guidance of {_WHOSE[loaded.source]}: {quoted(loaded.path)}{cut}\n" + fenced(
        loaded.text.strip("\n"), content_id=content_id, by_operator=True
    )


def skills_usage(facts: PromptFacts) -> str | None:
    """How skills are used, if there are any."""
    return prompt_text("skills_usage_contract") if facts.skills.entries else None


def skills_catalog(facts: PromptFacts) -> str | None:
    """Skills with their descriptions; many are shortened, and the later ones by name only.

    Descriptions often end with when to use a skill, so they are only cut if necessary.
    """
    entries = facts.skills.entries
    described = entries[:PROMPT_SKILLS_DESCRIBED_COUNT_MAX]
    description_chars = sum(len(each.description) for each in described)
    fits = description_chars <= PROMPT_SKILLS_DESCRIBED_COUNT_MAX * PROMPT_SKILL_CHARS_MAX
    chars_max = SKILL_DESCRIPTION_CHARS_MAX if fits else PROMPT_SKILL_CHARS_MAX
    return _skills([_described(each, chars_max) for each in described], entries[len(described) :])


def skills_by_name(facts: PromptFacts) -> str | None:
    """Skills by name only."""
    return _skills([], facts.skills.entries)


def _skills(lines: list[str], rest: tuple[SkillEntry, ...]) -> str | None:
    if not lines and not rest:
        return None
    named = quoted(", ".join([each.name for each in rest[:PROMPT_SKILLS_NAMED_COUNT_MAX]]))
    unnamed = len(rest) - PROMPT_SKILLS_NAMED_COUNT_MAX
    more = [f"By name only: {named}"] if named else []
    if unnamed > 0:
        more.append(f"and {unnamed} more, in the same folders")
    return "\n".join(["## Skills you may use", *lines, *more])


@lru_cache(maxsize=_DESCRIPTIONS_KEPT_COUNT)
def _described(entry: SkillEntry, chars_max: int) -> str:
    description = entry.description[:chars_max]
    return quoted(f"- {entry.name} ({entry.scope}): {description} [{entry.path}]")


def active_skills(facts: PromptFacts) -> str | None:
    """Active skills."""
    if not facts.active_skills:
        return None
    lines = [
        f"- {quoted(each.skill_name)} ({each.state}): {quoted(each.entrypoint_path)}"
        for each in facts.active_skills[:PROMPT_SKILLS_DESCRIBED_COUNT_MAX]
    ]
    return "\n".join(["## Skills in use", *lines])


def templates_catalog(facts: PromptFacts) -> str | None:
    """Templates for new agents."""
    if not facts.templates:
        return None
    lines = [
        f"- {quoted(each.template_id)}: {quoted(each.summary)[:PROMPT_SKILL_CHARS_MAX]}"
        for each in facts.templates[:PROMPT_TEMPLATES_COUNT_MAX]
    ]
    return "\n".join(["## Agent templates", *lines])
