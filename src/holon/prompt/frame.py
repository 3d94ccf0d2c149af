"""Prompt frame: everything in a request except the conversation.

Owns:  assembling a frame from facts, with the share of the current input; the cache key, and the
       fingerprint of a prompt.
Rule 1: the cache key depends on what stays the same from turn to turn: stable and agent-scoped text
        and the offered tools. Turn-scoped text never changes it.
Rule 2: the fingerprint covers the whole frame and its input; it is for people, never for caching.
Rule 3: the same facts and budget make the same frame, byte for byte.
Rule 4: the frame and the current input together stay within the budget, or there is no frame.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from holon.decide.providers.token_estimate import bytes_of_tokens, estimated_tokens, tokens_of_bytes
from holon.decide.turns.conversation import incoming_texts
from holon.model.providers.prompt_frame import PromptBlock, PromptCache, PromptFrame, Stability
from holon.model.record import Record
from holon.model.text_size import utf8_bytes
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import AgentId
from holon.prompt.facts import OfferedTools, PromptFacts
from holon.prompt.planner import (
    Outcome,
    Part,
    PinnedOverBudget,
    PlannedSection,
    PromptBudget,
    SectionReport,
    Share,
    plan,
)
from holon.prompt.sections import CURRENT_INPUT, IDENTITY, IN_CONVERSATION, SECTIONS

_DIGEST_CHARS: Final = 16
_STABLE_TEXTS_COUNT: Final = 64  # constant texts, each the same in every prompt


class CacheFacts(Record, frozen=True, kw_only=True):
    """Further facts of a cache identity, which are not part of the key."""

    current_input: str | None = None
    working_memory_revision: int = 0
    compression_epoch: int = 0


def cache_scope(
    agent_id: AgentId,
    frame: PromptFrame,
    tools: OfferedTools,
    known: CacheFacts = CacheFacts(),  # noqa: B008 - a frozen value
) -> PromptCache:
    """Return the cache identity of a frame."""
    always = (tools.sha256.encode(), sha256(frame.system_prompt.encode()).digest())
    lasting, turn_scoped = list[bytes](), list[bytes]()
    for block in (*frame.system_blocks, *frame.context_blocks):
        is_lasting = block.stability is not Stability.TURN_SCOPED
        (lasting if is_lasting else turn_scoped).append(_digest(block))
    if known.current_input is not None:
        turn_scoped.append(sha256(known.current_input.encode()).digest())
    scope = _joined((*always, *lasting))
    return PromptCache(
        agent_id=agent_id,
        prompt_cache_key=f"{agent_id}:ctx:{scope}",
        context_fingerprint=_joined((*always, *lasting, *turn_scoped)),
        working_memory_revision=known.working_memory_revision,
        compression_epoch=known.compression_epoch,
    )


def _digest(block: PromptBlock) -> bytes:
    if block.stability is Stability.STABLE:
        return _stable_digest(block.text)
    return sha256(f"{block.stability}:{block.text}".encode()).digest()


@lru_cache(maxsize=_STABLE_TEXTS_COUNT)
def _stable_digest(text: str) -> bytes:
    return sha256(f"{Stability.STABLE}:{text}".encode()).digest()


def _joined(digests: Iterable[bytes]) -> str:
    """Return the digest of digests; their equal length makes the concatenation unambiguous."""
    return sha256(b"".join(digests)).hexdigest()[:_DIGEST_CHARS]


class AssembledPrompt(Record, frozen=True, kw_only=True):
    """A frame, the outcome of every section, and the size limit of incoming bodies."""

    frame: PromptFrame
    sections: tuple[SectionReport, ...]  # in the order of the contract, the current input last
    texts: tuple[str | None, ...]  # of the sections, as sent
    budget: PromptBudget
    input_bytes_max: int | None = None  # None: unlimited


Assembly: TypeAlias = AssembledPrompt | PinnedOverBudget


def assemble(facts: PromptFacts, budget: PromptBudget) -> Assembly:
    """Return the frame for these facts, or why it does not fit."""
    planned = plan(SECTIONS, facts, budget)
    if isinstance(planned, PinnedOverBudget):
        return planned
    fitted = _fit_input(facts.current_input, budget)
    if isinstance(fitted, PinnedOverBudget):
        return fitted
    frame = _frame(planned)
    cache = cache_scope(
        facts.identity.agent_id,
        frame,
        facts.tools,
        CacheFacts(
            current_input=fitted.text,
            working_memory_revision=facts.memory.revision,
            compression_epoch=facts.memory.compression_epoch,
        ),
    )
    return AssembledPrompt(
        frame=msgspec.structs.replace(frame, cache=cache),
        sections=(*(each.report for each in planned), fitted.report),
        texts=(*(each.text for each in planned), fitted.text),
        budget=budget,
        input_bytes_max=fitted.bytes_max,
    )


def _frame(planned: tuple[PlannedSection, ...]) -> PromptFrame:
    identity = next(each.text for each in planned if each.report.name == IDENTITY)
    blocks: dict[Part, list[PromptBlock]] = {Part.SYSTEM: [], Part.CONTEXT: []}
    for each in planned:
        if each.text is not None and each.report.name != IDENTITY:
            block = PromptBlock(text=each.text, stability=each.report.stability)
            blocks[each.report.part].append(block)
    return PromptFrame(
        system_prompt=identity or "",
        system_blocks=tuple(blocks[Part.SYSTEM]),
        context_blocks=tuple(blocks[Part.CONTEXT]),
    )


class _FittedInput(Record, frozen=True, kw_only=True):
    """The current input within its share."""

    text: str | None
    report: SectionReport
    bytes_max: int | None = None


def _fit_input(
    incoming: IncomingMessage | None, budget: PromptBudget
) -> _FittedInput | PinnedOverBudget:
    if incoming is None:
        return _fitted(None, Outcome.OMITTED, "nothing has come in", budget)
    room = budget.share(Share.INPUT)
    whole = "\n".join(incoming_texts(incoming))
    if estimated_tokens(whole, budget.calibration) <= room:
        return _fitted(whole, Outcome.FULL, IN_CONVERSATION, budget)
    full_bytes = utf8_bytes(whole)
    labels = "\n".join(incoming_texts(incoming, body_bytes_max=0))
    labels_bytes, bodies_count = utf8_bytes(labels), 1 + len(incoming.unseen)
    bodies_bytes = bytes_of_tokens(room, budget.calibration) - labels_bytes
    bytes_max = bodies_bytes // bodies_count
    if bytes_max < 1:
        return PinnedOverBudget(
            share=Share.INPUT,
            needed_tokens=tokens_of_bytes(labels_bytes + bodies_count, budget.calibration),
            share_tokens=room,
            sections=(CURRENT_INPUT,),
        )
    cut = "\n".join(incoming_texts(incoming, body_bytes_max=bytes_max))
    reason = f"its share has no room for all of it; {IN_CONVERSATION}"
    fitted = _fitted(cut, Outcome.TRUNCATED, reason, budget, full_bytes=full_bytes)
    return msgspec.structs.replace(fitted, bytes_max=bytes_max)


def _fitted(
    text: str | None,
    outcome: Outcome,
    reason: str,
    budget: PromptBudget,
    *,
    full_bytes: int | None = None,
) -> _FittedInput:
    size = utf8_bytes(text or "")
    report = SectionReport(
        name=CURRENT_INPUT,
        part=Part.CONTEXT,
        stability=Stability.TURN_SCOPED,
        outcome=outcome,
        reason=reason,
        pinned=True,
        full_bytes=size if full_bytes is None else full_bytes,
        sent_bytes=size,
        sent_tokens=estimated_tokens(text or "", budget.calibration),
    )
    return _FittedInput(text=text, report=report)
