"""The commands, patches, tasks and work items of the mixed model.

Owns:  rounds that act on the machine, and the proof that they did. A command appends its call's
       effect id to a file in the workspace, so that executions can be counted; a patch adds a file
       whose content its name determines.
Rule 1: every command ends by itself within a few seconds.
Rule 2: a round refers only to tasks and work items that the model was shown.
"""

import re
from random import Random
from typing import Final

from holon.model.turns.conversation import ConversationMessage, ToolResultBlock, UserMessage
from holon.model.values import JsonValue
from tests.support.scripted_provider import ScriptedCall, ScriptedRound

EFFECTS_FILE: Final = "effects"
NOTE_PREFIX: Final = "note-"
_PROOF: Final = f'echo "$HOLON_EFFECT_ID" >> {EFFECTS_FILE}'
_LAST_PROOF: Final = f'echo "$HOLON_EFFECT_ID:end" >> {EFFECTS_FILE}'
_TASK_ID: Final = re.compile(r'"task_id":\s*"(task_[a-z0-9]+)"')
_WORK_ID: Final = re.compile(r'"(work_[a-z0-9]+)"')
_NAPS_S: Final = (0.02, 0.1, 0.5, 1.5, 2.5, 4)
_NOTE_LINES_COUNT: Final = 40
_TWIN: Final = f"sleep 0.6; {_PROOF}"  # always the same words, so that it meets itself running


def note_text(name: str) -> str:
    """Return the whole content of a note."""
    return "".join(f"{name} line {number}\n" for number in range(_NOTE_LINES_COUNT))


def command_round(chance: Random, conversation: tuple[ConversationMessage, ...]) -> ScriptedRound:
    """Return a round that does something."""
    dice = chance.random()
    if dice < 0.22:
        return ScriptedRound(text="Quickly.", calls=(_short(chance),))
    if dice < 0.50:
        return ScriptedRound(calls=(_long(chance),))
    if dice < 0.58:
        return ScriptedRound(calls=(_long(chance), _short(chance)))
    if dice < 0.68:
        return ScriptedRound(calls=(_batch(chance),))
    if dice < 0.78:
        return ScriptedRound(calls=(_patch(chance),))
    if dice < 0.92:
        return ScriptedRound(calls=(_about_a_task(chance, task_ids_shown(conversation)),))
    return ScriptedRound(text="It is done.", calls=(_work(chance, _shown(conversation)),))


def _short(chance: Random) -> ScriptedCall:
    cmd = chance.choice(
        (
            _PROOF,
            f"{_PROOF}; exit 3",
            f"{_PROOF}; echo out; echo err >&2",
            f"{_PROOF}; setsid sleep 2 >/dev/null 2>&1 &",  # leaves somebody behind
            f"{_PROOF}; kill -9 $$",
        )
    )
    return _exec(cmd=cmd)


def _long(chance: Random) -> ScriptedCall:
    """A command that becomes a task, most of the time."""
    yield_time_ms = chance.choice((0, 1, 5, 30))
    if chance.random() < 0.2:
        return _exec(cmd=_TWIN, yield_time_ms=yield_time_ms)
    manner = chance.choice(("", "", "", "trap '' TERM; ", "exec 2>&1; "))
    nap = f"sleep {chance.choice(_NAPS_S)}"
    end = chance.choice(("", "", "; exit 4"))
    cmd = f"{manner}{_PROOF}; echo begun; {nap}; {_LAST_PROOF}{end}"
    tty = chance.random() < 0.1
    return _exec(cmd=cmd, yield_time_ms=yield_time_ms, tty=tty)


def _exec(**arguments: JsonValue) -> ScriptedCall:
    return ScriptedCall(name="ExecCommand", input=arguments)


def _batch(chance: Random) -> ScriptedCall:
    items: list[JsonValue] = [
        {"cmd": f'echo "$HOLON_EFFECT_ID:{index}" >> {EFFECTS_FILE}'}
        for index in range(chance.randrange(1, 4))
    ]
    if chance.random() < 0.3:
        items.append({"cmd": "sleep 3", "yield_time_ms": 20})
    return ScriptedCall(name="ExecCommandBatch", input={"items": items})


def _patch(chance: Random) -> ScriptedCall:
    names = [f"{NOTE_PREFIX}{chance.randrange(10**12)}" for _ in range(chance.randrange(1, 4))]
    added = [f"*** Add File: {name}\n{_as_added(note_text(name))}" for name in names]
    patch = f"*** Begin Patch\n{''.join(added)}*** End Patch\n"
    return ScriptedCall(name="ApplyPatch", input={"patch": patch})


def _as_added(text: str) -> str:
    return "".join(f"+{line}\n" for line in text.splitlines())


def _about_a_task(chance: Random, known: list[str]) -> ScriptedCall:
    if not known:
        return ScriptedCall(name="TaskList")
    about: dict[str, JsonValue] = {"task_id": known[-1]}
    match chance.choice(("stop", "stop", "output", "wait", "status")):
        case "stop":
            return ScriptedCall(name="TaskStop", input=about)
        case "output":
            return ScriptedCall(name="TaskOutput", input=about)
        case "wait":
            return ScriptedCall(
                name="TaskOutput", input={**about, "block": True, "timeout_ms": 150}
            )
        case _:
            return ScriptedCall(name="TaskStatus", input=about)


def _work(chance: Random, shown: str) -> ScriptedCall:
    known = _WORK_ID.findall(shown)
    if known:
        return ScriptedCall(name="CompleteWorkItem", input={"work_item_id": known[-1]})
    objective = f"objective {chance.randrange(1_000)}"
    return ScriptedCall(name="CreateWorkItem", input={"objective": objective, "plan": "1. begin"})


def task_ids_shown(conversation: tuple[ConversationMessage, ...]) -> list[str]:
    """Return the tasks tools have told of, the newest last."""
    return _TASK_ID.findall(_shown(conversation))


def _shown(conversation: tuple[ConversationMessage, ...]) -> str:
    """Everything tools have answered, oldest first."""
    return "\n".join(
        str(block.content)
        for message in conversation
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    )
