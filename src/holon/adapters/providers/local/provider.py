"""The local provider, and the grammar that constrains its tool calls.

Owns:  the provider that takes a conversation one round further; the GBNF grammar compiled from the
       JSON schemas of the offered tools; opening a model after cheap checks.
Rule 1: an answer that begins with `{` is a call: one offered tool with arguments of its schema. Any
        other answer is text.
Rule 2: whitespace is fixed, so that a model cannot spend its answer on indentation.
Rule 3: what the grammar cannot express (patterns, ranges) is left to the tool's own validation; a
        schema nested deeper than _DEPTH_MAX accepts any JSON from there on.
Rule 4: text is reported as progress while it is generated; a call is not, because half a call means
        nothing.
Rule 5: a chat that exceeds the context is retried shorter before the round fails.
Rule 6: opening reads a few bytes and starts nothing: the first request loads the weights.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from holon.adapters.providers.local.engine import (
    GeneratedText,
    LocalEngine,
    begins_call,
    find_weights,
    lift,
    next_call_id,
    require_engine,
)
from holon.adapters.providers.local.prompt import LocalChat, Profile, chat_of, profile_for
from holon.model.limits import LOCAL_THREADS_COUNT_DEFAULT
from holon.model.providers.attempts import (
    ContextTooLongError,
    ExchangeStage,
    ProviderError,
    TransportDiagnostics,
)
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.tools import ToolSpec
from holon.model.turns.turn import ModelAnswer, TextGrew
from holon.model.values import JsonValue
from holon.ports.providers import OnProgress

_DEPTH_MAX: Final = 6
_REPEATED_COUNT_MAX: Final = 512  # llama.cpp writes repetitions out, and refuses long ones

_WORDS: Final = r"[^{\x00-\x20] [^\x00]*"
_SHARED: Final = (
    'any ::= anyobject | anyarray | string | number | "true" | "false" | "null"\n'
    'anyobject ::= "{" (string ": " any (", " string ": " any)*)? "}"\n'
    'anyarray ::= "[" (any (", " any)*)? "]"\n'
    'string ::= "\\"" char* "\\""\n'
    r'char ::= [^"\\\x00-\x1f\x7f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})' + "\n"
    'integer ::= "-"? ("0" | [1-9] [0-9]{0,14})\n'
    'number ::= integer ("." [0-9]{1,15})?\n'
)
_SHRINKS: Final = (1, 2, 4)


def grammar_of(tools: Sequence[ToolSpec], profile: Profile) -> str:
    """Return the grammar for these tools, in GBNF. Without tools, words are all there is."""
    if not tools:
        return f"root ::= {_WORDS}"
    calls = [f"call{number} ::= {_call(tool, profile)}" for number, tool in enumerate(tools)]
    choices = " | ".join(f"call{number}" for number in range(len(tools)))
    return "\n".join((f"root ::= words | {choices}", f"words ::= {_WORDS}", *calls, _SHARED))


def _call(tool: ToolSpec, profile: Profile) -> str:
    opening = f'{{"tool": {_json(tool.name)}, "arguments": '
    arguments = _Schema(tool.input_schema, profile).expression()
    return f'{_literal(opening)} {arguments} "}}"'


class _Schema:
    """One tool's schema, becoming an expression."""

    def __init__(self, root: JsonValue, profile: Profile) -> None:
        self._root = root
        self._profile = profile

    def expression(self) -> str:
        """Return the expression of the whole schema; arguments are always an object."""
        root = self._resolved(self._root)
        if not isinstance(root, dict) or not isinstance(root.get("properties"), dict):
            return "anyobject"
        return self._object(root, 0)

    def _of(self, schema: JsonValue, depth: int) -> str:
        schema = self._resolved(schema)
        if not isinstance(schema, dict) or depth > _DEPTH_MAX:
            return "any"
        if "const" in schema:
            return _literal(_json(schema["const"]))
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return _one_of(_literal(_json(each)) for each in schema["enum"])
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                return _one_of(self._of(each, depth + 1) for each in schema[key])
        kinds = schema.get("type")
        named = kinds if isinstance(kinds, list) else [kinds]
        return _one_of(self._of_kind(kind, schema, depth) for kind in named)

    def _of_kind(self, kind: JsonValue, schema: dict[str, JsonValue], depth: int) -> str:
        simple = {
            "integer": "integer",
            "number": "number",
            "boolean": '("true" | "false")',
            "null": '"null"',
        }
        complex_kinds: dict[str, Callable[[dict[str, JsonValue], int], str]] = {
            "string": self._text,
            "array": self._array,
            "object": self._object,
        }
        if kind in complex_kinds:
            return complex_kinds[kind](schema, depth)
        return simple.get(kind, "any")

    def _text(self, schema: dict[str, JsonValue], depth: int) -> str:
        del depth
        limits = (schema.get("maxLength"), self._profile.text_chars_max)
        longest = min((limit for limit in limits if isinstance(limit, int)), default=None)
        shortest = 1 if schema.get("minLength") else 0
        if longest is None or longest > _REPEATED_COUNT_MAX:
            return f'"\\"" {"char " * shortest}char* "\\""'
        return f'"\\"" char{{{min(shortest, longest)},{longest}}} "\\""'

    def _array(self, schema: dict[str, JsonValue], depth: int) -> str:
        item = self._of(schema.get("items"), depth + 1)
        filled = f'{item} (", " {item})*'
        return f'"[" {filled} "]"' if schema.get("minItems") else f'"[" ({filled})? "]"'

    def _object(self, schema: dict[str, JsonValue], depth: int) -> str:
        fields = schema.get("properties")
        if not isinstance(fields, dict):
            return "anyobject"
        named = schema.get("required", [])
        required = [name for name in fields if name in named]
        optional = [name for name in fields if name not in named]
        if self._profile.required_arguments_only:
            optional = optional if not required and depth == 0 else []
        member = {
            name: f"{_literal(_json(name) + ': ')} {self._of(fields[name], depth + 1)}"
            for name in (*required, *optional)
        }
        inside = _members([member[n] for n in required], [member[n] for n in optional])
        return f'"{{" {inside} "}}"'

    def _resolved(self, schema: JsonValue) -> JsonValue:
        """Follow references into the schema's own definitions."""
        for _ in range(_DEPTH_MAX):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return schema
            target = self._root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target.get(part) if isinstance(target, dict) else None
            schema = target
        return None


def _members(required: list[str], optional: list[str]) -> str:
    if required:
        rest = " ".join(f'(", " {each})?' for each in optional)
        return f"{_spaced(', ', required)} {rest}"
    starts = [
        " ".join((first, *(f'(", " {each})?' for each in optional[at + 1 :])))
        for at, first in enumerate(optional)
    ]
    return f"{_one_of(starts)}?" if starts else '""'


def _spaced(between: str, parts: list[str]) -> str:
    return f' "{between}" '.join(parts)


def _one_of(choices: Iterator[str] | list[str]) -> str:
    return f"({' | '.join(choices)})"


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class LocalProvider:
    """Answers with a local model."""

    def __init__(self, model_ref: ModelRef, *, engine: LocalEngine, profile: Profile) -> None:
        self._model_ref = model_ref
        self._engine = engine
        self._profile = profile

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the next round."""
        try:
            chat, written = await self._written(request, on_progress)
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

    async def _written(
        self, request: ProviderRequest, on_progress: OnProgress
    ) -> tuple[LocalChat, GeneratedText]:
        for shrink in _SHRINKS:
            chat = chat_of(request, self._profile, shrink=shrink)
            try:
                return chat, await self._write(chat, on_progress)
            except ContextTooLongError as error:
                refused = error
        raise refused

    async def _write(self, chat: LocalChat, on_progress: OnProgress) -> GeneratedText:
        listening = _ProgressFilter(on_progress, may_call=bool(chat.tools))
        return await self._engine.write(
            [{"role": line.role, "content": line.content} for line in chat.lines],
            grammar=self._grammar(chat),
            tokens_max=self._profile.output_tokens_max,
            on_text=listening.hear,
        )

    def _grammar(self, chat: LocalChat) -> str | None:
        if not chat.tools and not chat.keep_to_words:
            return None
        return grammar_of(chat.tools, self._profile)

    def _diagnostics(self, stage: ExchangeStage = ExchangeStage.COMPLETE) -> TransportDiagnostics:
        return TransportDiagnostics(
            stage=stage, provider=self._model_ref.provider, model_ref=str(self._model_ref)
        )


class _ProgressFilter:
    """Passes words on and keeps calls back."""

    def __init__(self, on_progress: OnProgress, *, may_call: bool) -> None:
        self._on_progress = on_progress
        self._may_call = may_call
        self._begun = ""

    def hear(self, text: str) -> None:
        """Take a little more of the answer."""
        self._begun = self._begun or text.lstrip()
        if self._begun and not (self._may_call and begins_call(self._begun)):
            self._on_progress(TextGrew(text=text))


def open_local_model(model: str, threads: int = LOCAL_THREADS_COUNT_DEFAULT) -> LocalProvider:
    """Return the provider of a local model, or raise ModelUnavailableError.

    Keep what is returned: it holds the weights once they are loaded.
    """
    require_engine()
    weights = find_weights(model)
    profile = profile_for(model)
    engine = LocalEngine(weights, threads=threads, context_tokens=profile.context_tokens)
    ref = ModelRef(provider="local", model=model)
    return LocalProvider(ref, engine=engine, profile=profile)
