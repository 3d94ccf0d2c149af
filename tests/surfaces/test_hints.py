"""Each command and each route that the program names exists, and works as it is printed."""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

import holon
from holon.cli.main import main
from holon.http.table import ROUTES
from tests.cli.operator_desk import Desk, open_desk

SOURCE = Path(holon.__file__).parent
STAND_IN = "x1"  # for what is only known when the program runs
# A command ends with a quote, a bracket or the sentence. What follows may be prose.
_COMMAND = re.compile(r"(?<![\w/.<-])holon (?P<rest>[a-z][^`;()|<>\n]*)(?P<end>[`;()|<>\n]|$)")
_ROUTE = re.compile(r"\b(?P<method>GET|POST|PUT|PATCH|DELETE) (?P<path>/[^\s`;,()\"]*)")
_CONTROL_PATH = re.compile(r"^/control/[^\s`;,()\"]*$")
# Prose about Holon, and the names of its folders and files.
_PROSE = frozenset({"agents", "itself", "home"})


class Hint(NamedTuple):
    """Something the program tells to do, and where it says so."""

    text: str
    where: str


def texts_of(module: Path) -> Iterator[Hint]:
    """Every string of a module, with a stand-in for each value in it; docstrings too."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    inside = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for each in ast.walk(node)
        if each is not node
    }
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            text = ""
            for part in node.values:
                glued = bool(text) and text[-1].isalpha()  # a value that may add an option
                value = "" if glued else STAND_IN
                text += str(part.value) if isinstance(part, ast.Constant) else value
            yield Hint(text, f"{module.name}:{node.lineno}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Hint(node.value, f"{module.name}:{node.lineno}")


TEXTS = [text for module in sorted(SOURCE.rglob("*.py")) for text in texts_of(module)]


def commands() -> Iterator[Hint]:
    """Every command line the program names."""
    for hint in TEXTS:
        for found in _COMMAND.finditer(hint.text):
            first = found["rest"].split()[0].strip(".,:")
            if first not in (*_PROSE, STAND_IN):
                yield Hint(found["rest"], hint.where)


def routes() -> Iterator[tuple[str, str, str]]:
    """Every route the program names: its method, if it is named, its path, and where."""
    for hint in TEXTS:
        for found in _ROUTE.finditer(hint.text):
            yield found["method"], found["path"].rstrip(".:"), hint.where
        if _CONTROL_PATH.match(hint.text) and not hint.text.endswith(STAND_IN):
            yield "", hint.text, hint.where


# Groups that take what one of their commands takes.
_BY_DEFAULT: dict[str, str] = {"task": "run", "timer": "create"}


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command these words begin with, and the words after it."""
    command: click.Command = main
    context = click.Context(main, info_name="holon")
    while words and isinstance(command, click.Group) and words[0] not in ("--help", "--version"):
        inner = command.get_command(context, words[0])
        if inner is None:
            default = _BY_DEFAULT.get(str(context.info_name))
            assert default is not None, f"{context.info_name} has no {words[0]}"
            words = [default, *words]
            continue
        context = click.Context(inner, info_name=words[0], parent=context)
        command, words = inner, words[1:]
    return command, words


@pytest.mark.requirement("hints:name-what-exists")
def test_every_command_the_program_names_is_one_it_has_with_the_options_it_names() -> None:
    named = list(commands())
    assert len(named) > 100, "the search finds what there is"
    wrong = []
    for hint in named:
        words = re.sub(r"([,{]| && ).*", "", hint.text).rstrip(".: ").split()
        try:
            command, rest = resolved(words)
        except AssertionError as unknown:
            wrong.append(f"{hint.where}: holon {hint.text}: {unknown}")
            continue
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        asked = [word.split("=")[0].rstrip(".:") for word in rest if re.match(r"--[a-z]", word)]
        wrong += [
            f"{hint.where}: holon {hint.text}: no option {word}"
            for word in asked
            if word not in known | {"--help"}
        ]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.requirement("hints:name-what-exists")
def test_every_route_the_program_names_is_served() -> None:
    served = {(route.method, re.sub(r"\{\w+\}", "*", route.path)) for route in ROUTES}
    wrong = []
    named = list(routes())
    assert len(named) > 5
    for method, path, where in named:
        plain = re.sub(r"\{\w+\}", "*", path)
        shape = "/".join("*" if part in (STAND_IN, "*") else part for part in plain.split("/"))
        if not any(shape == known and method in ("", name) for name, known in served):
            wrong.append(f"{where}: {method} {path}")
    assert wrong == []


def quoted_commands(text: str) -> list[list[str]]:
    """The commands a hint quotes, as words; without the program's own name."""
    return [shlex.split(found)[1:] for found in re.findall(r"`(holon [^`]*)`", text)]


@pytest.mark.requirement("hints:work-as-printed")
@pytest.mark.parametrize("verb", ["stop", "pause"])
async def test_what_brings_an_agent_back_works_as_it_is_printed(tmp_path: Path, verb: str) -> None:
    async with open_desk(tmp_path) as desk:
        for by in ("command", "path"):
            await desk.said("agent", verb, "main")
            told = (await desk.told("status"))["lifecycle"]
            if by == "command":
                _, *words = shlex.split(told["resume_cli_hint"])
                await desk.said(*words)
            else:
                resumed = await desk.server.operator.post(told["resume_control_path"])
                assert resumed.status == 200
            assert (await desk.told("status"))["lifecycle"]["resume_required"] is False


@pytest.mark.requirement("hints:work-as-printed")
async def test_a_refused_prompt_says_what_to_do_and_that_works(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        path = "/control/agents/main/prompt"
        for number in range(2):
            await desk.said("agent", "stop", "main")
            refused = (await desk.server.operator.post(path, {"text": "hello"})).json()
            assert refused["code"] == "agent_stopped"
            [words] = quoted_commands(refused["hint"])
            [(method, route)] = re.findall(r"\((POST|GET) (/\S*)\)", refused["hint"])
            assert route == refused["resume_path"]
            if number == 0:
                await desk.said(*words)
            else:
                assert (await desk.server.operator.send(method, route)).status == 200
            assert (await desk.server.operator.post(path, {"text": "hello"})).status == 200


@pytest.mark.requirement("hints:work-as-printed")
async def test_an_unknown_agent_is_looked_for_with_the_command_that_is_named(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path) as desk:
        refused = await desk.server.operator.post("/control/agents/builder/stop")
        [listing] = quoted_commands(refused.json()["hint"])
        assert "main" in await desk.said(*listing)


@pytest.mark.requirement("hints:work-as-printed")
async def test_a_stopped_agent_that_is_to_pause_is_told_what_to_do_first(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await _pause_as_told(desk)


async def _pause_as_told(desk: Desk) -> None:
    await desk.said("agent", "stop", "main")
    done = await desk.holon("agent", "pause", "main", "--json")
    assert done.exit_code != 0
    told = json.loads(done.stdout)
    assert told["code"] == "transition_forbidden"
    for words in quoted_commands(told["hint"]):
        await desk.said(*words)
    assert await desk.said("agent", "pause", "main") == "main is paused\n"
