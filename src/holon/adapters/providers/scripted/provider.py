"""The scripted provider, and the loading of its script files.

Owns:  answering from a script; the lookup of scripts by name or path, the cap on their files, and
       errors that name file, line and reason.
Rule 1: the answer depends on the conversation only, so a turn that resumes after a crash continues
        where it was.
Rule 2: `fail_times` is the only counter, per position in a conversation: a line that fails a few
        times succeeds in the end, however often a restart repeats the failures.
Rule 3: a script that cannot be used is a ModelUnavailableError, whatever is wrong with it.
Rule 4: a script is data only: no YAML tags, no aliases (they can expand without bound), no
        duplicate keys.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from holon.adapters.providers.scripted.script import (
    FAILURES,
    Script,
    ScriptedRound,
    ScriptLine,
    ShownPrompt,
    line_for,
    unmet_by,
)
from holon.decide.providers.prompt_layout import layout_of
from holon.model.limits import JSON_DEPTH_MAX, MIB
from holon.model.providers.attempts import ModelUnavailableError, RequestRejectedError, TokenUsage
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import (
    AssistantBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from holon.model.turns.turn import (
    AnswerProgress,
    CallGrew,
    ModelAnswer,
    StopReason,
    TextGrew,
    ThinkingGrew,
)
from holon.model.values import AgentId, CallId, JsonValue, later
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress

if TYPE_CHECKING:
    import yaml


THINKING_ORIGIN: Final = "scripted:scripted"
_PIECES_COUNT: Final = 4
SCRIPT_BYTES_MAX: Final = 1 * MIB
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_HINT: Final = "name a script as scripted/<name> or scripted/<absolute path of a YAML file>"
_FAILED_AT: Final = re.compile(r"(?P<what>.*) - at `(?P<path>\$[^`]*)`\Z", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TEXT_KINDS: Final = frozenset({"str", "timestamp", "value", "merge"})
_CONSTRUCTED_KINDS: Final = frozenset({"null", "bool", "int", "float"})


class ScriptedProvider:
    """Plays a script."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self._script = script
        self._clock = clock
        self._failed: Counter[tuple[AgentId, int, int]] = Counter()

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return the line that comes next in this conversation."""
        line = line_for(self._script, request.conversation, turn_start=request.turn_start)
        self._require_shown(line, request)
        if line.round.after_ms:
            await self._clock.sleep_until(later(self._clock.now(), by_ms=line.round.after_ms))
        self._fail_if_scripted(line, request)
        answer = spoken(line.round, call_prefix=f"call_{line.number}")
        for progress in growth_of(answer):
            on_progress(progress)
        return answer

    def _require_shown(self, line: ScriptLine, request: ProviderRequest) -> None:
        if line.round.expect is None:
            return
        layout = layout_of(request)
        shown = ShownPrompt(
            system="\n".join(block.text for block in layout.system),
            conversation=layout.conversation,
            tools=[tool.name for tool in request.tools],
        )
        if (unmet := unmet_by(line.round.expect, shown)) is not None:
            script = f"script {self._script.name!r}" if self._script.name else "the script"
            raise RequestRejectedError(f"{script}, round {line.number + 1}: {unmet}")

    def _fail_if_scripted(self, line: ScriptLine, request: ProviderRequest) -> None:
        if line.round.fail is None:
            return
        place = (request.agent_id, len(request.conversation), line.number)
        if line.round.fail_times is not None and self._failed[place] >= line.round.fail_times:
            del self._failed[place]
            return
        self._failed[place] += 1
        raise FAILURES[line.round.fail](
            f"scripted failure: {line.round.fail}", retry_after_ms=line.round.retry_after_ms
        )


def spoken(line: ScriptedRound, *, call_prefix: str) -> ModelAnswer:
    """Return a scripted line as the provider's answer."""
    stop = line.stop_reason or (StopReason.TOOL_USE if line.calls else StopReason.END_TURN)
    estimate = TokenUsage(input_tokens=10, output_tokens=max(1, len(line.text) // 4))
    return ModelAnswer(
        blocks=tuple(_blocks(line, call_prefix)),
        stop_reason=stop,
        usage=line.usage or estimate,
    )


def _blocks(line: ScriptedRound, call_prefix: str) -> Iterator[AssistantBlock]:
    if line.thinking:
        yield ThinkingBlock(text=line.thinking, origin=THINKING_ORIGIN)
    if line.text:
        yield TextBlock(text=line.text)
    for index, call in enumerate(line.calls):
        call_id = CallId(call.id or f"{call_prefix}_{index}")
        yield ToolUseBlock(call_id=call_id, name=call.name, input=call.input)


def growth_of(answer: ModelAnswer) -> Iterator[AnswerProgress]:
    """Yield an answer the way a stream would have brought it."""
    for block in answer.blocks:
        match block:
            case ThinkingBlock(text=text):
                yield from (ThinkingGrew(text=piece) for piece in pieces_of(text))
            case TextBlock(text=text):
                yield from (TextGrew(text=piece) for piece in pieces_of(text))
            case OpaqueBlock():
                pass  # nothing a watcher could read
            case ToolUseBlock(call_id=call_id, name=name):
                arguments = msgspec.json.encode(block.input).decode()
                for piece in pieces_of(arguments):
                    yield CallGrew(call_id=call_id, name=name, fragment=piece)


def pieces_of(text: str, *, count: int = _PIECES_COUNT) -> list[str]:
    """Return a text in a few pieces, none of them empty."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


PACKAGED_DIR: Final = Path(__file__).with_name("scripts")


def find_script(name: str, *, scripts_dir: Path | None) -> Script:
    """Return the script a model name stands for: a path, the operator's own, or a packaged one."""
    path = path_of_script(name, scripts_dir=scripts_dir)
    return script_of(_read(path), where=str(path))


def path_of_script(name: str, *, scripts_dir: Path | None) -> Path:
    """Return the file a model name stands for."""
    if name.startswith("/"):
        return Path(name)
    if not _NAME.match(name):
        raise ModelUnavailableError(f"{name!r} does not name a script", hint=_HINT)
    folders = (PACKAGED_DIR,) if scripts_dir is None else (scripts_dir, PACKAGED_DIR)
    for folder in folders:
        if (path := folder / f"{name}.yaml").exists():
            return path
    names = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
    similar = difflib.get_close_matches(name, names, n=1)
    guess = f"; did you mean {similar[0]!r}?" if similar else f"; there are: {', '.join(names)}"
    looked = " nor ".join(str(folder) for folder in folders)
    raise ModelUnavailableError(f"no script {name!r} in {looked}{guess}", hint=_HINT)


def script_of(data: bytes, *, where: str) -> Script:
    """Return the script that a file's bytes hold; `where` names the file in complaints."""
    import yaml  # imported here: only scripts need a YAML parser

    if len(data) > SCRIPT_BYTES_MAX:
        _fail(where, f"a script has at most {SCRIPT_BYTES_MAX} bytes")
    try:
        text = data.decode()
        _require_plain(text, where)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        _fail(where, f"byte {error.start} is not UTF-8", line=data.count(b"\n", 0, error.start))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _fail(where, str(error.problem), line=None if mark is None else mark.line)
    except yaml.reader.ReaderError as error:
        _fail(where, f"{error.reason} (character {error.position})")
    if root is None:
        _fail(where, "the file is empty")
    return _converted(root, where)


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():  # a pipe would be waited on, a folder cannot be read
            _fail(str(path), "there is no such file")
        with path.open("rb") as file:
            return file.read(SCRIPT_BYTES_MAX + 1)
    except OSError as error:
        _fail(str(path), error.strerror or type(error).__name__)


def _require_plain(text: str, where: str) -> None:
    """Refuse what could grow or nest without bound, before anything is built from it."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            _fail(where, "aliases are not allowed", line=_line_of(event))
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > JSON_DEPTH_MAX:
                reason = f"nested deeper than {JSON_DEPTH_MAX} levels"
                _fail(where, reason, line=_line_of(event))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _converted(root: "yaml.Node", where: str) -> Script:
    value = _value_of(root, where)
    try:
        script = msgspec.convert(value, Script)
    except msgspec.ValidationError as error:
        match = _FAILED_AT.match(str(error))
        problem, path = (match["what"], match["path"]) if match else (str(error), "$")
        _fail(where, f"{problem} (at {path})", line=_line_at(root, path, problem))
    if not script.rules and not script.rounds:
        _fail(where, "a script has rules or rounds")
    return script


def _value_of(node: "yaml.Node", where: str) -> JsonValue:
    import yaml

    match node:
        case yaml.MappingNode():
            return _object_of(node, where)
        case yaml.SequenceNode():
            return [_value_of(item, where) for item in node.value]
        case _:
            return _scalar_of(node, where)


def _object_of(node: "yaml.MappingNode", where: str) -> dict[str, JsonValue]:
    members: dict[str, JsonValue] = {}
    for key, value in node.value:
        if not isinstance(key.value, str):
            _fail(where, "a key is plain text", line=_line_of(key))
        if key.value in members:
            _fail(where, f"the key {key.value!r} is written twice", line=_line_of(key))
        members[key.value] = _value_of(value, where)
    return members


def _scalar_of(node: "yaml.Node", where: str) -> JsonValue:
    import yaml

    kind = str(node.tag).removeprefix("tag:yaml.org,2002:")
    if kind in _TEXT_KINDS:
        return node.value
    if kind not in _CONSTRUCTED_KINDS:
        _fail(where, f"the tag {node.tag!r} is not allowed", line=_line_of(node))
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except ValueError as error:
        _fail(where, str(error), line=_line_of(node))


def _line_at(root: "yaml.Node", path: str, problem: str) -> int:
    """The line of the node a decoder complains about, or of the key it does not know."""
    node = root
    for key, index in _STEP.findall(path):
        step = next((n for n in _children(node, key, index)), None)
        if step is None:
            break
        node = step
    unknown = re.search(r"unknown field `(.*)`", problem)
    if unknown is not None:
        node = next(_keys(node, unknown[1]), node)
    return _line_of(node)


def _line_of(marked: Any) -> int:
    return int(marked.start_mark.line)


def _children(node: Any, key: str, index: str) -> Iterator[Any]:
    if index.isdigit() and int(index) < len(node.value):
        yield node.value[int(index)]
    elif key and isinstance(node.value, list):
        yield from (value for name, value in node.value if name.value == key)


def _keys(node: Any, key: str) -> Iterator[Any]:
    yield from (name for name, _ in node.value if name.value == key)


def _fail(where: str, reason: str, *, line: int | None = None) -> NoReturn:
    place = where if line is None else f"{where}, line {line + 1}"
    raise ModelUnavailableError(f"the script cannot be used: {place}: {reason}", hint=_HINT)
