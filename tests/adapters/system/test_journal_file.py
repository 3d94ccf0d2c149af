"""One JSON object a line: bounded, without secrets, and never a reason to fail."""

import base64
import json
import threading
from typing import Any
from urllib.parse import quote

import pytest

from holon.adapters.system.journal import JournalFile, JournalLine
from holon.adapters.system.secrets import SecretRegistry
from holon.model.limits import (
    JOURNAL_LINE_BYTES_MAX,
    JOURNAL_MESSAGE_CHARS_MAX,
    JOURNAL_SAME_COUNT_MAX,
    JOURNAL_TRACE_CHARS_MAX,
    JOURNAL_WINDOW_MS,
)
from holon.ports.journal import LogLevel
from tests.support.manual_clock import ManualClock

CANARY = "sk-canary-0123456789/abcdef+XYZ"


class Paper:
    """A log in memory, on a disk that may be full."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.is_full = False

    def append(self, line: bytes) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.raw.append(line)

    @property
    def lines(self) -> list[Any]:
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in self.raw)
        return [json.loads(line) for line in self.raw]


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def journal(paper: Paper, clock: ManualClock) -> JournalFile:
    secrets = SecretRegistry()
    secrets.learn("provider", CANARY)
    return JournalFile(paper, redactor=secrets, clock=clock)


def raised(text: str) -> Exception:
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise ValueError(f"while asking with {text}") from cause
    except ValueError as error:
        error.add_note(f"the key was {text}")
        return error


@pytest.mark.requirement("journal:a-line-is-one-json-object")
def test_a_line_says_when_how_grave_what_and_about_whom(
    paper: Paper, journal: JournalFile, clock: ManualClock
) -> None:
    journal.note("turn_crashed", "it broke", level=LogLevel.ERROR, agent_id="main", turn_id=None)
    (line,) = paper.lines
    assert line["at"] == clock.now().isoformat().replace("+00:00", "Z")
    assert isinstance(line.pop("pid"), int)
    del line["at"]
    told = {"level": "error", "event": "turn_crashed", "message": "it broke", "agent_id": "main"}
    assert line == told


@pytest.mark.requirement("journal:no-secret-is-written")
@pytest.mark.parametrize(
    "form",
    [CANARY, quote(CANARY, safe=""), base64.b64encode(CANARY.encode()).decode()],
    ids=["raw", "url", "base64"],
)
def test_no_form_of_a_secret_gets_into_a_line_not_even_by_an_exception(
    paper: Paper, journal: JournalFile, form: str
) -> None:
    journal.note("a", f"asked with {form}", agent_id=f"x{form}", error=raised(form))
    journal.note("b", "y" * (JOURNAL_MESSAGE_CHARS_MAX - 5) + form)  # cut through the middle of it
    journal.note("c", "z", error=ValueError(form + "w" * (JOURNAL_TRACE_CHARS_MAX - 5)))
    written = b"".join(paper.raw).decode()
    assert len(paper.raw) == 3
    for start in range(0, len(form) - 8, 4):
        assert form[start : start + 8] not in written
    assert "[secret:provider]" in written


@pytest.mark.requirement("journal:a-line-is-bounded")
@pytest.mark.parametrize("sign", ["x", "\x01", "\udcff", "😀", '"', "\n"])
def test_a_line_has_a_bound_whatever_is_in_it(
    paper: Paper, journal: JournalFile, sign: str
) -> None:
    long = sign * 50_000
    journal.note("e", long, error=ValueError(long), agent_id=long, turn_id=long, task_id=long)
    (raw,) = paper.raw
    assert len(raw) <= JOURNAL_LINE_BYTES_MAX
    assert json.loads(raw)["event"] == "e"


def test_a_traceback_keeps_its_end(paper: Paper, journal: JournalFile) -> None:
    journal.note("e", "m", error=raised("k" * 20_000 + " the very end"))
    assert paper.lines[0]["trace"].endswith("the very end")


def test_what_is_below_the_level_is_left_out(paper: Paper, clock: ManualClock) -> None:
    journal = JournalFile(paper, redactor=SecretRegistry(), clock=clock, level=LogLevel.WARNING)
    for level in LogLevel:
        journal.note("e", level.value, level=level)
    assert [line["level"] for line in paper.lines] == ["warning", "error"]


def test_a_flood_ends_as_a_few_lines_and_a_count(
    paper: Paper, journal: JournalFile, clock: ManualClock
) -> None:
    for _ in range(10_000):
        journal.note("provider_failed", "no answer", level=LogLevel.WARNING)
    assert len(paper.raw) == JOURNAL_SAME_COUNT_MAX
    journal.sweep()
    assert len(paper.raw) == JOURNAL_SAME_COUNT_MAX, "the window is still open"
    clock.advance(JOURNAL_WINDOW_MS)
    journal.sweep()
    told = paper.lines[-1]
    assert (told["event"], told["of"], told["level"]) == ("repeated", "provider_failed", "warning")
    assert told["count"] == 10_000 - JOURNAL_SAME_COUNT_MAX


def test_the_last_count_is_told_when_the_journal_is_closed(
    paper: Paper, journal: JournalFile
) -> None:
    for _ in range(5):
        journal.note("e", "m")
    journal.close()
    assert paper.lines[-1]["count"] == 5 - JOURNAL_SAME_COUNT_MAX


def test_lines_a_full_disk_swallowed_are_told_as_a_count(
    paper: Paper, journal: JournalFile
) -> None:
    paper.is_full = True
    journal.note("one", "1")
    journal.note("two", "2")
    paper.is_full = False
    journal.note("three", "3")
    assert [line["event"] for line in paper.lines] == ["lines_lost", "three"]
    assert paper.lines[0]["count"] == 2


def test_whoever_watches_sees_the_cleaned_line_and_may_go_away(
    paper: Paper, clock: ManualClock
) -> None:
    seen: list[JournalLine] = []

    def echo(line: JournalLine) -> None:
        seen.append(line)
        raise BrokenPipeError

    secrets = SecretRegistry()
    secrets.learn("token", CANARY)
    journal = JournalFile(paper, redactor=secrets, clock=clock, echo=echo)
    journal.note("e", CANARY)
    assert (seen[0].message, len(paper.raw)) == ("[secret:token]", 1)


def test_threads_may_write_at_once(paper: Paper, journal: JournalFile) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            journal.note(f"of {number}", "m")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    counts = [line.get("count", 1) for line in paper.lines]
    assert sum(counts) == 8 * 20
