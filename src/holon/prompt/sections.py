"""The sections of a prompt, in the order that is part of its contract.

Owns:  the one tuple. A section that is not in it does not exist.
Rule 1: rows stand in the contract's order: system policy, modes of the turn, guidance of the user,
        the agent and the workspace, skills, tools; then the context, ending with the current input.
Rule 2: on the wire, what is stable comes first, then what belongs to the agent, then the history,
        then what belongs to the turn (decide/prompt_layout); inside each of them this order holds.
        A text that never changes but has to follow guidance is therefore given as agent-scoped.
Rule 3: a row that is always empty says where its content is instead.
"""

from typing import Final

from holon.model.instructions import InstructionSource
from holon.model.prompt_frame import Stability
from holon.prompt import render_agent, render_memory, render_turn, render_work
from holon.prompt.facts import PromptFacts
from holon.prompt.prompt_texts import prompt_text
from holon.prompt.section import Keep, Part, Renderer, Section

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
        full=render_agent.guidance_of(source),
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
        full=render_agent.delegated_task,
        absent="the agent works for no other one",
        may_be_cut=False,
    ),
    _policy("event_turn"),
    Section(
        name="constrained_repair",
        part=Part.SYSTEM,
        stability=_TURN,
        keep=Keep.PINNED,
        full=render_turn.constrained_repair,
        absent="the turn was not cut off",
        may_be_cut=False,
    ),
    *(_guidance(source) for source in InstructionSource),
    Section(
        name="skills_usage_contract",
        part=Part.SYSTEM,
        stability=_AGENT,
        keep=Keep.POLICY,
        full=render_agent.skills_usage,
        absent="there are no skills",
        may_be_cut=False,
    ),
    _elsewhere("tool_guidance", Part.SYSTEM, _STABLE, "it is sent as each tool's description"),
    _context("agent", _AGENT, Keep.PINNED, render_agent.agent),
    _context("default_external_ingress", _AGENT, Keep.USEFUL, render_agent.external_ingress),
    _context("execution_environment", _AGENT, Keep.PINNED, render_agent.execution_environment),
    _context("working_memory", _AGENT, Keep.USEFUL, render_memory.working_memory),
    _context("relevant_episodes", _AGENT, Keep.EXTRA, render_memory.relevant_episodes),
    _context("working_memory_delta", _TURN, Keep.USEFUL, render_memory.working_memory_delta),
    _context(
        "current_work_item",
        _TURN,
        Keep.PINNED,
        render_work.current_work_item,
        compact=render_work.compact_work_item,
    ),
    _context("process_trace", _TURN, Keep.EXTRA, render_work.process_trace),
    _context(
        "queued_blocked_work_items",
        _TURN,
        Keep.USEFUL,
        render_work.work_queue,
        compact=render_work.compact_work_queue,
    ),
    _context("worktree_session", _AGENT, Keep.USEFUL, render_agent.worktree_session),
    _context("agent_templates_catalog", _AGENT, Keep.EXTRA, render_agent.templates_catalog),
    _context(
        "skills_catalog",
        _AGENT,
        Keep.USEFUL,
        render_agent.skills_catalog,
        compact=render_agent.skills_by_name,
    ),
    _context("active_skills", _AGENT, Keep.USEFUL, render_agent.active_skills),
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
        render_turn.latest_result,
        compact=render_turn.compact_result,
    ),
    _context("recent_briefs", _TURN, Keep.EXTRA, render_turn.recent_briefs),
    _elsewhere("recent_tool_executions", Part.CONTEXT, _TURN, IN_CONVERSATION),
    _context("continuation_context", _TURN, Keep.USEFUL, render_turn.continuation),
)
