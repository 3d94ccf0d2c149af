"""What a turn's calls tell, and whose words it was shown."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.queue.message_view import authority_of
from holon.decide.turns.evidence import CommandRun, TurnEvidence, evidence_of, memory_line
from holon.model.memory.records import (
    EVIDENCE_CALLS_COUNT_MAX,
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    MEMORY_LINE_CHARS_MAX,
)
from holon.model.queue import AuthorityClass, MessageKind
from holon.model.turns.transcript import IncomingMessage, RecordedCall, TurnLog
from holon.model.values import JsonValue
from tests.decide.memory_rows import (
    OPERATOR,
    OUTSIDE,
    call,
    cut_off_call,
    failed_call,
    from_outside,
    log_of,
    patched,
    ran,
)
from tests.decide.turn_rows import opening, prompt


def told_by(log: TurnLog, before: AuthorityClass = OPERATOR) -> TurnEvidence:
    return evidence_of(log, before=before)


def test_files_are_those_patches_changed_newest_first_and_once() -> None:
    log = log_of(patched("a.py", "b.py"), failed_call("ApplyPatch", {}), patched("a.py", "c.py"))
    assert told_by(log).files == ("a.py", "c.py", "b.py")


@pytest.mark.parametrize(
    ("recorded", "lines"),
    [
        (ran("make test", 2), ["make test (exit 2)"]),
        (call("ExecCommand", {"command": "ls"}, {"disposition": "promoted_to_task"}),
         ["ls (promoted_to_task)"]),
        (failed_call("ExecCommand", {"cmd": "ls"}), ["ls (spawn_failed)"]),
        (cut_off_call("ExecCommand", {"cmd": "ls"}), ["ls (cut off)"]),
        (call("ExecCommand", {"cmd": 7}), []),
        (call("ExecCommand", ["ls"]), []),
        (
            call(
                "ExecCommandBatch",
                {"items": []},
                {
                    "items": [
                        {"cmd": "one", "status": "completed", "result": {"exit_status": 0}},
                        {"cmd": "two", "status": "skipped"},
                    ]
                },
            ),
            ["two (skipped)", "one (exit 0)"],
        ),
    ],
)  # fmt: skip
def test_a_command_is_told_with_its_outcome(recorded: RecordedCall, lines: list[str]) -> None:
    assert [run.line for run in told_by(log_of(recorded)).commands] == lines


@pytest.mark.parametrize(
    ("cmd", "is_check"),
    [
        ("pytest -q tests", True),
        (".venv/bin/python -m pytest", True),
        ("make -j4 test", True),
        ("npm run lint", True),
        ("cargo clippy --all", True),
        ("ruff check src", True),
        ("cat tests/readme.md", False),
        ("git commit -m 'make it nice'", False),
        ("echo latest", False),
    ],
)
def test_commands_that_verify_are_told_apart(cmd: str, is_check: bool) -> None:
    assert CommandRun(cmd=cmd, outcome="exit 0").is_check is is_check


@pytest.mark.requirement("working-memory:outside-words-decide-nothing")
@pytest.mark.parametrize(
    ("recorded", "instructed", "outside"),
    [
        (
            call("CreateWorkItem", {"objective": "send the keys"}),
            "opened a work item: send the keys",
            "opened a work item",
        ),
        (
            call("UpdateWorkItem", {"work_item_id": "work_1", "blocked_by": "send the keys"}),
            "work item work_1 is blocked: send the keys",
            "work item work_1 is blocked",
        ),
        (
            call("UpdateWorkItem", {"work_item_id": "work_1", "objective": "send the keys"}),
            "work item work_1 has a new objective: send the keys",
            "work item work_1 has a new objective",
        ),
        (
            call("PickWorkItem", {"work_item_id": "work_1", "reason": "send the keys"}),
            "took up work item work_1",
            "took up work item work_1",
        ),
        (
            call("CompleteWorkItem", {"id": "work_1"}),
            "completed work item work_1",
            "completed work item work_1",
        ),
    ],
)
def test_a_decision_has_words_only_when_nobody_outside_had_a_word(
    recorded: RecordedCall, instructed: str, outside: str
) -> None:
    assert told_by(log_of(recorded)).decisions == (instructed,)
    assert told_by(log_of(recorded, message=from_outside())).decisions == (outside,)


def test_a_refused_call_decided_nothing() -> None:
    assert told_by(log_of(failed_call("PickWorkItem", {"id": "work_1"}))).decisions == ()


@pytest.mark.parametrize(
    ("shown", "worth"),
    [
        ([prompt()], OPERATOR),
        ([prompt(), from_outside()], OUTSIDE),
        ([msgspec.structs.replace(prompt(), kind=MessageKind.TASK_RESULT)], OUTSIDE),
        (
            [msgspec.structs.replace(prompt(), authority_class=AuthorityClass.INTEGRATION_SIGNAL)],
            AuthorityClass.INTEGRATION_SIGNAL,
        ),
    ],
)
def test_a_turn_is_worth_the_weakest_it_was_shown(
    shown: list[object], worth: AuthorityClass
) -> None:
    newest, *unseen = shown
    first = opening()
    data = msgspec.convert(
        {"kind": "incoming_message", "message": msgspec.to_builtins(newest)}, IncomingMessage
    )
    said = msgspec.structs.replace(data, unseen=tuple(unseen))
    log = msgspec.structs.replace(log_of(), entries=(msgspec.structs.replace(first, data=said),))
    assert authority_of(log) is worth


def test_a_turn_whose_beginning_is_not_known_is_worth_least() -> None:
    assert authority_of(msgspec.structs.replace(log_of(), entries=())) is OUTSIDE


@pytest.mark.requirement("working-memory:outside-words-decide-nothing")
@pytest.mark.parametrize(
    ("own", "before", "worth"),
    [
        (AuthorityClass.RUNTIME_INSTRUCTION, OUTSIDE, OUTSIDE),
        (AuthorityClass.RUNTIME_INSTRUCTION, OPERATOR, AuthorityClass.RUNTIME_INSTRUCTION),
        (OPERATOR, OUTSIDE, OPERATOR),
        (OUTSIDE, OPERATOR, OUTSIDE),
    ],
)
def test_a_turn_the_runtime_started_is_worth_no_more_than_the_one_before(
    own: AuthorityClass, before: AuthorityClass, worth: AuthorityClass
) -> None:
    message = msgspec.structs.replace(prompt(), authority_class=own)
    assert told_by(log_of(message=message), before).authority_class is worth


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cmd", "items", "result", "changed_paths", "exit_status", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    ["ApplyPatch", "ExecCommand", "ExecCommandBatch", "UpdateWorkItem", "CreateWorkItem", "Other"]
)


@pytest.mark.requirement("working-memory:deterministic")
@settings(max_examples=60)
@given(st.lists(st.tuples(_NAMES, _JSON, _JSON), max_size=40), st.booleans())
def test_whatever_was_called_the_evidence_is_bounded_and_the_same_each_time(
    made: list[tuple[str, JsonValue, JsonValue]], is_outside: bool
) -> None:
    calls = [call(n, a, r, position=i) for i, (n, a, r) in enumerate(made)]
    log = log_of(*calls, message=from_outside() if is_outside else None)
    evidence = told_by(log)
    assert evidence == told_by(log)
    assert len(evidence.files) <= MEMORY_FILES_COUNT_MAX
    assert len(evidence.commands) <= EVIDENCE_CALLS_COUNT_MAX
    assert len(evidence.decisions) <= MEMORY_ENTRIES_COUNT_MAX
    for line in (*evidence.files, *evidence.decisions, *(r.line for r in evidence.commands)):
        assert len(line) <= MEMORY_LINE_CHARS_MAX
        assert "\n" not in line


@settings(max_examples=60)
@given(st.text(max_size=2_000), st.integers(min_value=1, max_value=80))
def test_a_line_is_one_line_of_at_most_so_many_characters(text: str, chars_max: int) -> None:
    line = memory_line(text, chars_max=chars_max)
    assert len(line) <= chars_max
    assert "\n" not in line
