"""What every journal promises, asked of each implementation."""

from collections.abc import Callable

import pytest

from holon.adapters.system.journal import JournalFile
from holon.adapters.system.logs import PythonLog
from holon.adapters.system.secrets import SecretRegistry
from holon.ports.journal import Journal, LogLevel, NoJournal
from tests.adapters.system.test_journal_file import Paper
from tests.support.manual_clock import ManualClock


class Torn:
    """A log that cannot be written."""

    def append(self, line: bytes) -> None:
        raise OSError(5, "Input/output error")


def on(log: Paper | Torn) -> Callable[[], Journal]:
    return lambda: JournalFile(log, redactor=SecretRegistry(), clock=ManualClock())


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words for it")


@pytest.mark.parametrize("make", [NoJournal, PythonLog, on(Paper()), on(Torn())])
@pytest.mark.parametrize(
    "text",
    ["", "plain", "\x00\x1b[2J\n", "\udcff\ud800", "%s %d {x}"],
    ids=["nothing", "plain", "controls", "surrogates", "formats"],
)
def test_a_note_never_raises_whatever_it_says(make: Callable[[], Journal], text: str) -> None:
    journal = make()
    for level in LogLevel:
        journal.note(text, text, level=level, error=Unprintable(text), agent_id=text, count=None)
