"""The sections of a prompt, in their contractual order.

Owns:  the one tuple of sections. A section that is not in it does not exist.
Rule 1: sections follow the contract's order: system policy, modes of the turn, guidance of the
        user, the agent and the workspace, skills, tools; then the context, ending with the current
        input.
Rule 2: on the wire, stable text comes first, then agent-scoped text, then the history, then
        turn-scoped text (decide/providers/prompt_layout); within each, this order holds. A constant
        text that has to follow guidance is therefore declared agent-scoped.
Rule 3: a section that is always empty says where its content is instead.
"""

from typing import Final

from holon.model.guidance import InstructionSource
from holon.model.providers.prompt_frame import Stability
from holon.prompt import agents, memory, turns, work
from holon.prompt.agents import prompt_text
from holon.prompt.facts import PromptFacts
from holon.prompt.planner import Keep, Part, Renderer, Section

IDENTITY: Final = "identity"
CURRENT_INPUT: Final = "current_input"
IN_CONVERSATION: Final = "it is in the conversation"

_STABLE, _AGENT, _TURN = Stability.STABLE, Stability.AGENT_SCOPED, Stability.TURN_SCOPED


_ABSENT: Final = {
    "agent": "there is no agent",
    "default_external_ingress": "the agent has no active trigger, or nothing can be delivered here",
    "execution_environment": "there is none",
    "working_memory": "nothing is folded into it while the conversation shows every turn",
    "relevant_episodes": "no earlier episode bears on the work",
    "working_memory_delta": "the last turn changed nothing in it",
    "current_work_item": "the agent is on no item",
    "process_trace": "the agent is on no item, or has not begun it",
    "queued_blocked_work_items": "there are no other open items",
    "worktree_session": "the agent is in no worktree",
    "agent_templates_catalog": "no tool on offer makes agents, or there are no templates",
    "skills_catalog": "there are no skills",
    "active_skills": "no skill is in use",
    "latest_result": "there is no result that was not yet taken in",
    "recent_briefs": "the conversation shows them, or there are none",
    "continuation_context": "there is nothing to go on with",
}


def _policy(name: str, keep: Keep = Keep.POLICY) -> Section:
    return Section(
        name=name,
        part=Part.SYSTEM,
        stability=_STABLE,
        keep=keep,
        full=lambda _: prompt_text(name),
        may_be_cut=False,
    )


def _guidance(source: InstructionSource) -> Section:
    return Section(
        name=f"agents_md_{source}",
        part=Part.SYSTEM,
        stability=_AGENT,
        keep=Keep.GUIDANCE,
        full=agents.guidance_of(source),
        absent="there is no such file, or none that can be used",
    )


def _context(
    name: str,
    stability: Stability,
    keep: Keep,
    full: Renderer,
    *,
    compact: Renderer | None = None,
) -> Section:
    return Section(
        name=name,
        part=Part.CONTEXT,
        stability=stability,
        keep=keep,
        full=full,
        compact=compact,
        absent=_ABSENT[name],
    )


def _elsewhere(name: str, part: Part, stability: Stability, where: str) -> Section:
    return Section(
        name=name, part=part, stability=stability, keep=Keep.EXTRA, full=_nothing, absent=where
    )


def _nothing(facts: PromptFacts) -> None:
    del facts


SECTIONS: Final[tuple[Section, ...]] = (
    _policy(IDENTITY, Keep.PINNED),
    _policy("core_contract", Keep.PINNED),
    _policy("engineering_guardrails"),
    _policy("planning_discipline"),
    _policy("work_item_first_execution"),
    _policy("async_coordination"),
    _policy("trust_boundary", Keep.PINNED),
    _policy("verification"),
    _policy("completion"),
    _policy("reporting"),
    _policy("long_task_delivery"),
    _policy("execution_environment_contract"),
    _policy("agent_contract"),
    Section(
        name="delegated_task",
        part=Part.SYSTEM,
        stability=_STABLE,
        keep=Keep.PINNED,
        full=agents.delegated_task,
        absent="the agent works for no other one",
        may_be_cut=False,
    ),
    _policy("event_turn"),
    Section(
        name="constrained_repair",
        part=Part.SYSTEM,
        stability=_TURN,
        keep=Keep.PINNED,
        full=turns.constrained_repair,
        absent="the turn was not cut off",
        may_be_cut=False,
    ),
    *(_guidance(source) for source in InstructionSource),
    Section(
        name="skills_usage_contract",
        part=Part.SYSTEM,
        stability=_AGENT,
        keep=Keep.POLICY,
        full=agents.skills_usage,
        absent="there are no skills",
        may_be_cut=False,
    ),
    _elsewhere("tool_guidance", Part.SYSTEM, _STABLE, "it is sent as each tool's description"),
    _context("agent", _AGENT, Keep.PINNED, agents.agent),
    _context("default_external_ingress", _AGENT, Keep.USEFUL, agents.external_ingress),
    _context("execution_environment", _AGENT, Keep.PINNED, agents.execution_environment),
    _context("working_memory", _AGENT, Keep.USEFUL, memory.working_memory),
    _context("relevant_episodes", _AGENT, Keep.EXTRA, memory.relevant_episodes),
    _context("working_memory_delta", _TURN, Keep.USEFUL, memory.working_memory_delta),
    _context(
        "current_work_item",
        _TURN,
        Keep.PINNED,
        work.current_work_item,
        compact=work.compact_work_item,
    ),
    _context("process_trace", _TURN, Keep.EXTRA, work.process_trace),
    _context(
        "queued_blocked_work_items",
        _TURN,
        Keep.USEFUL,
        work.work_queue,
        compact=work.compact_work_queue,
    ),
    _context("worktree_session", _AGENT, Keep.USEFUL, agents.worktree_session),
    _context("agent_templates_catalog", _AGENT, Keep.EXTRA, agents.templates_catalog),
    _context(
        "skills_catalog",
        _AGENT,
        Keep.USEFUL,
        agents.skills_catalog,
        compact=agents.skills_by_name,
    ),
    _context("active_skills", _AGENT, Keep.USEFUL, agents.active_skills),
    Section(
        name="context_contract",
        part=Part.CONTEXT,
        stability=_AGENT,
        keep=Keep.POLICY,
        full=lambda _: prompt_text("context_contract"),
        may_be_cut=False,
    ),
    _elsewhere("recent_messages", Part.CONTEXT, _TURN, IN_CONVERSATION),
    _context(
        "latest_result",
        _TURN,
        Keep.PINNED,
        turns.latest_result,
        compact=turns.compact_result,
    ),
    _context("recent_briefs", _TURN, Keep.EXTRA, turns.recent_briefs),
    _elsewhere("recent_tool_executions", Part.CONTEXT, _TURN, IN_CONVERSATION),
    _context("continuation_context", _TURN, Keep.USEFUL, turns.continuation),
)
