"""Scripts are found by name or path; a bad one is named with its file, its line and its fault."""

import os
import sys
from pathlib import Path
from subprocess import run

import pytest

from holon.adapters.providers.scripted.provider import (
    PACKAGED_DIR,
    SCRIPT_BYTES_MAX,
    find_script,
    script_of,
)
from holon.adapters.providers.scripted.script import Expectation, ScriptedCall
from holon.model.providers.attempts import ModelUnavailableError, TokenUsage
from holon.model.turns.turn import StopReason

WHOLE = b"""
name: everything
rules:
  - when: deploy
    rounds:
      - text: On it.
        thinking: hm
        calls:
          - {name: ExecCommand, input: {cmd: make, since: 2026-01-01, tries: 3}, id: c1}
        stop_reason: max_tokens
        usage: {input_tokens: 5, output_tokens: 6}
        expect: {says: deploy, tools: [ExecCommand], result_of: {ExecCommand: done}}
      - fail: rate_limited
        fail_times: 2
        retry_after_ms: 250
        after_ms: 10
  - rounds:
      - text: What?
"""


@pytest.mark.requirement("provider-scripted:a-script-is-a-yaml-file")
def test_every_part_of_a_script_is_read() -> None:
    script = script_of(WHOLE, where="x.yaml")
    named, other = script.rules
    first, second = named.rounds
    assert script.name == "everything"
    assert (named.when, other.when) == ("deploy", "")
    assert first.calls == (
        ScriptedCall(
            name="ExecCommand", input={"cmd": "make", "since": "2026-01-01", "tries": 3}, id="c1"
        ),
    )
    assert first.stop_reason is StopReason.MAX_TOKENS
    assert first.usage == TokenUsage(input_tokens=5, output_tokens=6)
    assert first.expect == Expectation(
        says="deploy", tools=("ExecCommand",), result_of={"ExecCommand": "done"}
    )
    assert (second.fail, second.fail_times, second.retry_after_ms) == ("rate_limited", 2, 250)


BAD = (
    (b"", "the file is empty", None),
    (b"rounds: [", "expected", 1),
    (b"rounds:\n  - text: a\n   text: b\n", "expected", 3),
    (b"rounds:\n  - text: a\n    texts: b\n", "unknown field `texts`", 3),
    (b"rounds:\n  - text: a\nruels: []\n", "unknown field `ruels`", 3),
    (b"rounds:\n  - text: a\n  - text: [1]\n", "Expected `str`", 3),
    (b"rounds:\n  - fail: bad_mood\n", "rate_limited", 2),
    (b"rounds:\n  - text: a\n    fail_times: 1\n", "belong to a line with fail", 2),
    (b"rounds:\n  - after_ms: -1\n", ">= 0", 2),
    (b"rounds:\n  - text: a\n    text: b\n", "'text' is written twice", 3),
    (b"rounds:\n  - calls:\n      - {name: A, input: .nan}\n", "NaN", 3),
    (b"rounds:\n  - calls: [{name: A, id: x}, {name: B, id: x}]\n", "the same id", 2),
    (b"rules:\n  - when: x\n    rounds: []\n", "at least one round", 2),
    (b"rules:\n  - rounds: [{text: a}]\nrounds: [{text: a}]\n", "not both", 1),
    (b"name: nothing\n", "has rules or rounds", None),
    (b"- text: a\n", "Expected `object`", 1),
    (b"just words\n", "Expected `object`", 1),
    (b"a: &x [1]\nb: *x\n", "aliases are not allowed", 2),
    (b"rounds:\n  - text: !!python/name:os.system a\n", "is not allowed", 2),
    (b"? [a]\n: b\n", "a key is plain text", 1),
    (b"rounds: [{text: a}]\n---\nrounds: []\n", "document", 2),
    (b"rounds:\n  - text: \xff\n", "not UTF-8", 2),
    (b"rounds:\n  - text: \x07\n", "not allowed", None),
    (b"rounds: " + b"[" * 5_000, "nested deeper", 1),
    (b"rounds:\n  - after_ms: " + b"9" * 5_000, "", 2),
    (b"#" * (SCRIPT_BYTES_MAX + 1), "at most", None),
)


@pytest.mark.requirement("provider-scripted:a-bad-script-names-its-fault")
@pytest.mark.parametrize(("data", "reason", "line"), BAD)
def test_a_bad_script_is_named_with_file_line_and_fault(
    data: bytes, reason: str, line: int | None
) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        script_of(data, where="my.yaml")
    message = caught.value.message
    assert reason in message
    assert ("my.yaml: " if line is None else f"my.yaml, line {line}: ") in message
    assert len(message) < 1_000


def test_an_operators_script_comes_before_a_packaged_one(tmp_path: Path) -> None:
    assert find_script("hello", scripts_dir=tmp_path).name == "hello"
    (tmp_path / "hello.yaml").write_bytes(b"name: mine\nrounds: [{text: hi}]\n")
    assert find_script("hello", scripts_dir=tmp_path).name == "mine"
    assert find_script("hello", scripts_dir=None).name == "hello"


def test_a_script_is_found_by_its_absolute_path(tmp_path: Path) -> None:
    path = tmp_path / "any name.yml"
    path.write_bytes(b"rounds: [{text: hi}]\n")
    assert find_script(str(path), scripts_dir=None).rounds[0].text == "hi"


@pytest.mark.parametrize("path", sorted(PACKAGED_DIR.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_packaged_script_can_be_played(path: Path) -> None:
    assert find_script(path.stem, scripts_dir=None).name == path.stem


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("helo", "did you mean 'hello'"),
        ("nothing-like-it", "hello, tool-call"),
        ("../hello", "does not name a script"),
        ("", "does not name a script"),
        ("/no/such/file.yaml", "no such file"),
        ("/", "no such file"),
    ],
)
def test_a_script_that_is_not_there_is_a_model_that_cannot_be_used(name: str, reason: str) -> None:
    with pytest.raises(ModelUnavailableError, match=reason):
        find_script(name, scripts_dir=None)


def test_a_pipe_is_not_waited_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ModelUnavailableError, match="no such file"):
        find_script("pipe", scripts_dir=tmp_path)


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(4 * 1024 * SCRIPT_BYTES_MAX)
    with pytest.raises(ModelUnavailableError, match="at most"):
        find_script("huge", scripts_dir=tmp_path)


def test_the_yaml_reader_is_loaded_only_when_a_script_is_read() -> None:
    code = (
        "import sys, holon.adapters.providers.scripted.provider,"
        " holon.adapters.providers.scripted.provider; print('yaml' in sys.modules)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
