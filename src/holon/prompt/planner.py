"""Prompt planner: how much of each section fits into the token budget.

Owns:  the description of a section; the shares of a prompt, and the choice between a section's
       full, compact and cut forms.
Rule 1: a renderer is a pure function of the facts. It returns nothing for an empty section.
Rule 2: a pinned section is never left out: it is shown whole, or in its compact form.
Rule 3: a prompt has three shares of a model's window: lasting text, text of the turn, and the
        current input. No share borrows from another, so that a long turn never changes a byte of
        the lasting text; what a share does not use is left to the conversation.
Rule 4: pinned sections come first, each at least in its compact form, cut if necessary. When even
        that does not fit, nothing is sent, and the outcome names what did not fit.
Rule 5: the others follow by importance, in the order of the prompt: full, compact, cut, or left
        out; each outcome is reported with its sizes and its reason.
Rule 6: the outcome depends on the facts and the budget alone.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from holon.decide.providers.token_estimate import (
    UNCALIBRATED,
    Calibration,
    bytes_of_tokens,
    estimated_tokens,
    tokens_of_bytes,
)
from holon.decide.text.fencing import cut_between_fences
from holon.model.limits import (
    PROMPT_CUT_TOKENS_MIN,
    PROMPT_INPUT_PERCENT,
    PROMPT_LASTING_PERCENT,
    PROMPT_LASTING_TOKENS_MAX,
    PROMPT_MARGIN_TOKENS,
    PROMPT_PINNED_TOKENS_MIN,
    PROMPT_TOKENS_DEFAULT,
    PROMPT_TURN_PERCENT,
    PROMPT_TURN_TOKENS_MAX,
)
from holon.model.providers.prompt_frame import Stability
from holon.model.record import Record
from holon.model.text_size import utf8_bytes
from holon.prompt.facts import PromptFacts

Renderer: TypeAlias = Callable[[PromptFacts], str | None]
SECTIONS_KEPT_COUNT_MAX: Final = 128  # more than there are


class Part(StrEnum):
    """Which part of the frame a section belongs to."""

    SYSTEM = "system"
    CONTEXT = "context"


class Keep(IntEnum):
    """The importance of a section: the highest value is omitted first."""

    PINNED = 0
    POLICY = 1
    GUIDANCE = 2
    USEFUL = 3
    EXTRA = 4


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the prompt. `absent` is the reason shown when the renderer returns None."""

    name: str
    part: Part
    stability: Stability
    keep: Keep
    full: Renderer
    compact: Renderer | None = None
    absent: str = "nothing to say"
    may_be_cut: bool = True


class Outcome(StrEnum):
    """The form in which a section is sent."""

    FULL = "full"
    COMPACT = "compact"
    TRUNCATED = "truncated"
    OMITTED = "omitted"


class Share(StrEnum):
    """A reserved part of the budget."""

    LASTING = "lasting"
    TURN = "turn"
    INPUT = "input"


class PromptBudget(Record, frozen=True, kw_only=True):
    """The token budget of a prompt, in estimated tokens."""

    prompt_tokens_max: int
    tools_tokens: int
    calibration: Calibration = UNCALIBRATED

    @property
    def available_tokens(self) -> int:
        """The tokens left beside tools and margin."""
        return max(0, self.prompt_tokens_max - self.tools_tokens - PROMPT_MARGIN_TOKENS)

    def share(self, which: Share) -> int:
        """Return the size limit of one share."""
        available = self.available_tokens
        match which:
            case Share.LASTING:
                return min(PROMPT_LASTING_TOKENS_MAX, available * PROMPT_LASTING_PERCENT // 100)
            case Share.TURN:
                return min(PROMPT_TURN_TOKENS_MAX, available * PROMPT_TURN_PERCENT // 100)
            case Share.INPUT:
                return available * PROMPT_INPUT_PERCENT // 100


class SectionReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The outcome of one section, and its reason."""

    name: str
    part: Part
    stability: Stability
    outcome: Outcome
    reason: str
    pinned: bool
    full_bytes: int
    sent_bytes: int
    sent_tokens: int


class PlannedSection(Record, frozen=True, kw_only=True):
    """The text to send, if any, and the report."""

    text: str | None
    report: SectionReport


class PinnedOverBudget(Record, tag=True, frozen=True, kw_only=True):
    """The pinned sections do not fit even in their shortest forms."""

    share: Share
    needed_tokens: int
    share_tokens: int
    sections: tuple[str, ...]


def budget_of(
    prompt_tokens_max: int | None, *, tools_bytes: int, calibration: Calibration = UNCALIBRATED
) -> PromptBudget:
    """Return the budget of a model; an unknown window gets a default one."""
    return PromptBudget(
        prompt_tokens_max=PROMPT_TOKENS_DEFAULT if prompt_tokens_max is None else prompt_tokens_max,
        tools_tokens=tokens_of_bytes(tools_bytes, calibration),
        calibration=calibration,
    )


Plan: TypeAlias = tuple[PlannedSection, ...]


def plan(
    sections: Sequence[Section], facts: PromptFacts, budget: PromptBudget
) -> Plan | PinnedOverBudget:
    """Choose the form of every section, in order."""
    drafts = [_Draft(section, facts, budget.calibration) for section in sections]
    for share, members in _by_share(drafts):
        problem = _plan_share(members, share, budget.share(share))
        if problem is not None:
            return problem
    return tuple(draft.planned() for draft in drafts)


class _Draft:
    """One section during planning."""

    def __init__(self, section: Section, facts: PromptFacts, calibration: Calibration) -> None:
        self.section = section
        self._facts = facts
        self._calibration = calibration
        self.is_pinned = section.keep is Keep.PINNED
        self.full = section.full(facts)
        self.full_bytes = 0 if self.full is None else utf8_bytes(self.full)
        self.full_tokens = tokens_of_bytes(self.full_bytes, calibration)
        self.text: str | None = None
        self.tokens = 0
        self.outcome = Outcome.OMITTED
        self.reason = section.absent

    def take_full(self, reason: str) -> None:
        self.text, self.outcome, self.reason = self.full, Outcome.FULL, reason
        self.tokens = self.full_tokens

    def take(self, text: str, outcome: Outcome, reason: str) -> None:
        self.text, self.outcome, self.reason = text, outcome, reason
        self.tokens = self.tokens_of(text)

    def tokens_of(self, text: str) -> int:
        return estimated_tokens(text, self._calibration)

    def compact(self) -> str | None:
        return None if self.section.compact is None else self.section.compact(self._facts)

    def cut(self, text: str, tokens_max: int) -> str:
        bytes_max = bytes_of_tokens(tokens_max, self._calibration)
        return cut_between_fences(text, bytes_max=bytes_max)

    def planned(self) -> PlannedSection:
        section, text = self.section, self.text
        if self.full is None:
            return _absent(section)
        is_full = self.outcome is Outcome.FULL
        return PlannedSection(
            text=text,
            report=SectionReport(
                name=section.name,
                part=section.part,
                stability=section.stability,
                outcome=self.outcome,
                reason=self.reason,
                pinned=self.is_pinned,
                full_bytes=self.full_bytes,
                sent_bytes=self.full_bytes if is_full else utf8_bytes(text or ""),
                sent_tokens=self.tokens,
            ),
        )


@lru_cache(maxsize=SECTIONS_KEPT_COUNT_MAX)
def _absent(section: Section) -> PlannedSection:
    """Return the cached plan of an empty section."""
    return PlannedSection(
        text=None,
        report=SectionReport(
            name=section.name,
            part=section.part,
            stability=section.stability,
            outcome=Outcome.OMITTED,
            reason=section.absent,
            pinned=section.keep is Keep.PINNED,
            full_bytes=0,
            sent_bytes=0,
            sent_tokens=0,
        ),
    )


_SHARES: Final = {
    Stability.STABLE: Share.LASTING,
    Stability.AGENT_SCOPED: Share.LASTING,
    Stability.TURN_SCOPED: Share.TURN,
}


def _by_share(drafts: Sequence[_Draft]) -> Iterator[tuple[Share, list[_Draft]]]:
    for share in (Share.LASTING, Share.TURN):
        yield share, [each for each in drafts if _SHARES[each.section.stability] is share]


def _plan_share(drafts: list[_Draft], share: Share, tokens_max: int) -> PinnedOverBudget | None:
    pinned = [draft for draft in drafts if draft.is_pinned and draft.full is not None]
    for draft in pinned:
        _take_shortest(draft)
    needed = sum(draft.tokens for draft in pinned)
    if needed > tokens_max:
        return PinnedOverBudget(
            share=share,
            needed_tokens=needed,
            share_tokens=tokens_max,
            sections=tuple(draft.section.name for draft in pinned),
        )
    room = tokens_max - needed
    for draft in pinned:
        room = _lengthen(draft, room)
    # A stable sort: the order of the prompt holds within one importance.
    for draft in sorted(drafts, key=lambda each: each.section.keep):
        if not draft.is_pinned and draft.full is not None:
            _fit(draft, draft.full, room)
            room -= draft.tokens
    return None


def _take_shortest(draft: _Draft) -> None:
    """Give a pinned section its shortest form."""
    assert draft.full is not None, "only sections with text are drafted"
    if not draft.section.may_be_cut or draft.full_tokens <= PROMPT_PINNED_TOKENS_MIN:
        draft.take_full("it is pinned")
        return
    compact = draft.compact()
    if compact is not None and draft.tokens_of(compact) <= PROMPT_PINNED_TOKENS_MIN:
        draft.take(compact, Outcome.COMPACT, "its share has no room for all of it")
        return
    cut = draft.cut(compact or draft.full, PROMPT_PINNED_TOKENS_MIN)
    draft.take(cut, Outcome.TRUNCATED, "its share has no room for all of it")


def _lengthen(draft: _Draft, room: int) -> int:
    """Extend a pinned section to its full or compact form if there is room."""
    had = draft.tokens
    if draft.outcome is Outcome.FULL:
        return room
    if draft.full_tokens - had <= room:
        draft.take_full("it is pinned")
    elif draft.outcome is Outcome.TRUNCATED:
        _fit_pinned(draft, had + room)
    return room - (draft.tokens - had)


def _fit_pinned(draft: _Draft, tokens_max: int) -> None:
    compact = draft.compact()
    if compact is not None and draft.tokens_of(compact) <= tokens_max:
        draft.take(compact, Outcome.COMPACT, "its share has no room for all of it")
        return
    text = compact or draft.full or ""
    reason = "its share has no room for all of it"
    draft.take(draft.cut(text, tokens_max), Outcome.TRUNCATED, reason)


def _fit(draft: _Draft, full: str, room: int) -> None:
    if draft.full_tokens <= room:
        draft.take_full("it fits")
        return
    compact = draft.compact()
    if compact is not None and draft.tokens_of(compact) <= room:
        draft.take(compact, Outcome.COMPACT, "its share has no room for all of it")
        return
    if draft.section.may_be_cut and room >= PROMPT_CUT_TOKENS_MIN:
        text = compact if compact is not None else full
        draft.take(draft.cut(text, room), Outcome.TRUNCATED, "its share has no room for all of it")
        return
    draft.reason = "its share is used up"
