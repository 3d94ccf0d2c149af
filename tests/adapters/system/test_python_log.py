"""What libraries and old code log ends up in the journal, and crashes tell no secrets."""

import json
import logging
import subprocess
import sys

import pytest

from holon.adapters.system.journal import JournalFile
from holon.adapters.system.logs import PythonLog, python_log_into
from holon.adapters.system.secrets import SecretRegistry
from holon.ports.journal import LogLevel
from tests.adapters.system.test_journal_file import CANARY, Paper
from tests.support.manual_clock import ManualClock


def a_journal(paper: Paper) -> JournalFile:
    secrets = SecretRegistry()
    secrets.learn("key", CANARY)
    return JournalFile(paper, redactor=secrets, clock=ManualClock(), level=LogLevel.INFO)


def test_records_become_lines_with_their_event_and_their_ids() -> None:
    paper = Paper()
    with python_log_into(a_journal(paper), LogLevel.INFO):
        extra = {"event": "store_full", "agent_id": "main"}
        logging.getLogger("holon.runtime.x").warning("the disk is %s", "full", extra=extra)
        logging.getLogger("holon.x").info("ours")
        logging.getLogger("holon.x").debug("too fine")
        logging.getLogger("library").info("not asked for")
        logging.getLogger("library").error("asked for")
    logging.getLogger("holon.x").warning("afterwards")
    lines = paper.lines
    assert [line["message"] for line in lines[:2]] == ["the disk is full", "ours"]
    assert (lines[0]["event"], lines[0]["agent_id"]) == ("store_full", "main")
    assert lines[0]["logger"] == "holon.runtime.x"
    assert (len(lines), lines[2]["level"]) == (3, "error")


@pytest.mark.requirement("journal:no-secret-is-written")
def test_a_logged_exception_is_cleaned() -> None:
    paper = Paper()
    with python_log_into(a_journal(paper), LogLevel.INFO):
        try:
            raise ValueError(CANARY)
        except ValueError:
            logging.getLogger("library").exception("with %s", CANARY)
    assert CANARY.encode() not in paper.raw[0]
    assert "ValueError: [secret:key]" in paper.lines[0]["trace"]


def test_without_a_log_file_errors_go_to_pythons_log(caplog: pytest.LogCaptureFixture) -> None:
    PythonLog().note("turn_crashed", "it broke", level=LogLevel.ERROR, agent_id="main")
    PythonLog().note("provider_failed", "told otherwise", level=LogLevel.WARNING)
    assert [record.getMessage() for record in caplog.records] == ["it broke"]


CRASHES = f"""
import sys, threading
from holon.adapters.system.logs import clean_crashes
from holon.adapters.system.secrets import SecretRegistry
secrets = SecretRegistry()
secrets.learn("key", {CANARY!r})
clean_crashes(secrets)
def crash():
    raise RuntimeError("thread " + {CANARY!r}[:0] + secrets._names_by_value.__iter__().__next__())
thread = threading.Thread(target=crash)
thread.start()
thread.join()
crash()
"""


@pytest.mark.requirement("journal:no-secret-is-written")
def test_an_exception_nobody_caught_prints_no_secret() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASHES], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert json.dumps(done.stderr).count("RuntimeError: thread [secret:key]") == 2
    assert CANARY not in done.stderr
