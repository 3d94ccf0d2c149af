"""Prompt view: the assembled prompt, for inspection by a person.

Owns:  the view: every section in the order it is sent, with its size, outcome and text.
Rule 1: it shows the very frame that would be sent; nothing is rendered a second time for it.
Rule 2: sections come in wire order: stable, agent-scoped, the history, turn-scoped, and the current
        input last. Omitted sections follow all that was sent.
"""

from collections.abc import Sequence
from typing import Final

from holon.decide.turns.conversation import conversation_of
from holon.model.guidance import InstructionMetadata
from holon.model.providers.prompt_frame import PromptCache, Stability
from holon.model.record import Record
from holon.model.turns.conversation import ConversationMessage
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId
from holon.prompt.agents import policy_lines
from holon.prompt.facts import PromptFacts
from holon.prompt.frame import AssembledPrompt, Assembly
from holon.prompt.planner import Outcome, Part, PinnedOverBudget, PromptBudget, SectionReport, Share

_WIRE: Final = (Stability.STABLE, Stability.AGENT_SCOPED, Stability.TURN_SCOPED)


class SectionView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One section: its outcome, and its text as sent."""

    name: str
    part: Part
    stability: Stability
    outcome: Outcome
    reason: str
    pinned: bool
    full_bytes: int
    sent_bytes: int
    sent_tokens: int
    cache_breakpoint: bool
    text: str | None


class BudgetView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The shares of the model's window, in estimated tokens."""

    prompt_tokens_max: int
    tools_tokens: int
    available_tokens: int
    lasting_tokens_max: int
    turn_tokens_max: int
    input_tokens_max: int
    frame_tokens: int


class HistoryView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The conversation sent between the lasting and the turn-scoped sections."""

    turn_count: int
    message_count: int


class OverBudgetView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Why the prompt does not fit."""

    share: Share
    needed_tokens: int
    share_tokens: int
    sections: tuple[str, ...]


class PromptView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A whole prompt."""

    agent_id: AgentId
    model: str
    agent_home: str
    workspace_id: str
    workspace_anchor: str
    execution_root: str
    cwd: str
    execution_policy: tuple[str, ...]
    loaded_instructions: tuple[InstructionMetadata, ...]
    problems: tuple[str, ...]
    tools: tuple[str, ...]
    budget: BudgetView
    history: HistoryView
    cache: PromptCache | None
    sections: tuple[SectionView, ...]
    over_budget: OverBudgetView | None


def prompt_view(
    facts: PromptFacts,
    assembly: Assembly,
    *,
    model: str,
    budget: PromptBudget,
    history: Sequence[TurnLog],
) -> PromptView:
    """Return the view of a prompt, or of why it does not fit."""
    place = facts.execution
    prompt = None if isinstance(assembly, PinnedOverBudget) else assembly
    sections = () if prompt is None else _sections(prompt)
    return PromptView(
        agent_id=facts.identity.agent_id,
        model=model,
        agent_home=facts.agent_home,
        workspace_id=place.workspace_id,
        workspace_anchor=place.workspace_anchor,
        execution_root=place.execution_root,
        cwd=place.cwd,
        execution_policy=tuple(policy_lines(place.policy)),
        loaded_instructions=tuple(each.metadata for each in facts.guidance.files),
        problems=(*facts.guidance.problems, *facts.skills.problems),
        tools=tuple(spec.name for spec in facts.tools.specs),
        budget=_budget(budget, sections),
        history=_history(conversation_of(history), len(history)),
        cache=None if prompt is None else prompt.frame.cache,
        sections=sections,
        over_budget=_over_budget(assembly),
    )


def _history(conversation: Sequence[ConversationMessage], turn_count: int) -> HistoryView:
    return HistoryView(turn_count=turn_count, message_count=len(conversation))


def _over_budget(assembly: Assembly) -> OverBudgetView | None:
    if not isinstance(assembly, PinnedOverBudget):
        return None
    return OverBudgetView(
        share=assembly.share,
        needed_tokens=assembly.needed_tokens,
        share_tokens=assembly.share_tokens,
        sections=assembly.sections,
    )


def _budget(budget: PromptBudget, sections: Sequence[SectionView]) -> BudgetView:
    return BudgetView(
        prompt_tokens_max=budget.prompt_tokens_max,
        tools_tokens=budget.tools_tokens,
        available_tokens=budget.available_tokens,
        lasting_tokens_max=budget.share(Share.LASTING),
        turn_tokens_max=budget.share(Share.TURN),
        input_tokens_max=budget.share(Share.INPUT),
        frame_tokens=sum(section.sent_tokens for section in sections),
    )


def _sections(prompt: AssembledPrompt) -> tuple[SectionView, ...]:
    sections = tuple(zip(prompt.sections, prompt.texts, strict=True))
    sent = [
        (report, text)
        for stability in _WIRE
        for report, text in sections
        if report.stability is stability and text is not None
    ]
    ends = {
        max((i for i, (report, _) in enumerate(sent) if report.stability is stability), default=-1)
        for stability in _WIRE[:2]
    }
    left_out = (_view(report, None) for report, text in sections if text is None)
    return (
        *(_view(report, text, ends_prefix=i in ends) for i, (report, text) in enumerate(sent)),
        *left_out,
    )


def _view(report: SectionReport, text: str | None, *, ends_prefix: bool = False) -> SectionView:
    return SectionView(
        name=report.name,
        part=report.part,
        stability=report.stability,
        outcome=report.outcome,
        reason=report.reason,
        pinned=report.pinned,
        full_bytes=report.full_bytes,
        sent_bytes=report.sent_bytes,
        sent_tokens=report.sent_tokens,
        cache_breakpoint=ends_prefix,
        text=text,
    )
