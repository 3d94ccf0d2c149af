"""A real model in process.

Owns:  the provider that takes a conversation one round further with an engine and a profile.
Rule 1: words are heard as they are written; a call is not, because half of it means nothing.
Rule 2: a chat that turns out too long for the context is shown shorter before the round is failed.
"""

from typing import Final

import msgspec

from holon.adapters.providers.local.call_grammar import grammar_of
from holon.adapters.providers.local.engine import LocalEngine
from holon.adapters.providers.local.lift import Written, begins_call, lift, next_call_id
from holon.adapters.providers.local.profile import Profile
from holon.adapters.providers.local.prompt import Chat, chat_of
from holon.model.answer import ModelAnswer, TextGrew
from holon.model.model_ref import ModelRef
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_attempt import ExchangeStage, TransportDiagnostics
from holon.model.provider_errors import ContextTooLongError, ProviderError
from holon.ports.provider import Hear

_SHRINKS: Final = (1, 2, 4)


class LocalProvider:
    """Answers with a local model."""

    def __init__(self, model_ref: ModelRef, *, engine: LocalEngine, profile: Profile) -> None:
        self._model_ref = model_ref
        self._engine = engine
        self._profile = profile

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return the next round."""
        try:
            chat, written = await self._written(request, hear)
        except ProviderError as error:
            error.diagnostics = self._diagnostics(stage=ExchangeStage.REQUEST)
            raise
        notes = (f"left out {chat.left_out_count} messages",) if chat.left_out_count else ()
        return lift(
            written,
            may_call=bool(chat.tools),
            call_id=next_call_id(request.conversation),
            diagnostics=msgspec.structs.replace(self._diagnostics(), notes=notes),
        )

    async def _written(self, request: ProviderRequest, hear: Hear) -> tuple[Chat, Written]:
        for shrink in _SHRINKS:
            chat = chat_of(request, self._profile, shrink=shrink)
            try:
                return chat, await self._write(chat, hear)
            except ContextTooLongError as error:
                refused = error
        raise refused

    async def _write(self, chat: Chat, hear: Hear) -> Written:
        listening = _Listening(hear, may_call=bool(chat.tools))
        return await self._engine.write(
            [{"role": line.role, "content": line.content} for line in chat.lines],
            grammar=self._grammar(chat),
            tokens_max=self._profile.output_tokens_max,
            on_text=listening.hear,
        )

    def _grammar(self, chat: Chat) -> str | None:
        if not chat.tools and not chat.keep_to_words:
            return None
        return grammar_of(chat.tools, self._profile)

    def _diagnostics(self, stage: ExchangeStage = ExchangeStage.COMPLETE) -> TransportDiagnostics:
        return TransportDiagnostics(
            stage=stage, provider=self._model_ref.provider, model_ref=str(self._model_ref)
        )


class _Listening:
    """Passes words on and keeps calls back."""

    def __init__(self, hear: Hear, *, may_call: bool) -> None:
        self._hear = hear
        self._may_call = may_call
        self._begun = ""

    def hear(self, text: str) -> None:
        """Take a little more of the answer."""
        self._begun = self._begun or text.lstrip()
        if self._begun and not (self._may_call and begins_call(self._begun)):
            self._hear(TextGrew(text=text))
