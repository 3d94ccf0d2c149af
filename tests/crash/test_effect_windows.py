"""A tool call that was cut off has its effect at most once, and always exactly one receipt."""

import contextlib
import signal
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.ports.failpoint import Failpoint
from tests.crash.aftermath import problems_at_rest
from tests.crash.conftest import StartHost
from tests.crash.rest import come_to_rest
from tests.crash.stage import Ledger
from tests.support.served_host import HostGoneError

SCRIPT = {
    "rules": [
        {
            "when": "plan the week",
            "rounds": [
                {
                    "calls": [
                        {"name": "Enqueue", "input": {"text": "look at monday"}},
                        {"name": "Enqueue", "input": {"text": "look at tuesday"}},
                    ]
                },
                {"text": "Planned."},
            ],
        }
    ]
}
# How many follow-ups exist in the end: a call that was cut off is not made again.
WINDOWS = [
    (Failpoint.ROUND_AFTER_COMMIT, 1, 0),
    (Failpoint.TOOL_BEFORE_DONE, 1, 0),
    (Failpoint.TOOL_AFTER_DONE, 1, 1),
    (Failpoint.TOOL_BEFORE_DONE, 2, 1),
    (Failpoint.TOOL_AFTER_DONE, 2, 2),
    (Failpoint.PROVIDER_BEFORE_CALL, 2, 2),
    (Failpoint.SETTLE_BEFORE_COMMIT, 1, 2),
    (Failpoint.SETTLE_AFTER_COMMIT, 1, 2),
]


@pytest.mark.requirement("crash:effect-at-most-once")
@pytest.mark.parametrize(("point", "visit", "follow_ups"), WINDOWS)
def test_a_cut_off_call_has_at_most_one_effect_and_one_receipt(
    point: Failpoint, visit: int, follow_ups: int, tmp_path: Path, start_host: StartHost
) -> None:
    home, said = tmp_path / "home", {"text": "plan the week"}
    first = start_host(home, script=SCRIPT, failpoints=f"{point}=kill@{visit}")
    first.wait_ready()
    with contextlib.suppress(HostGoneError):  # the answer may or may not come before the kill
        first.post("/control/agents/main/prompt", said, key="k")
    assert first.join() == -signal.SIGKILL
    second = start_host(home)
    second.wait_ready()
    answer = second.post("/control/agents/main/prompt", said, key="k")
    come_to_rest(second)
    second.terminate()
    acked = {"k": str(answer.at("message_id"))}
    assert problems_at_rest(home, Ledger(acked=acked)) == []
    with open_untouched(database_path(home)) as connection:
        kinds = [str(kind) for (kind,) in connection.execute("select kind from messages")]
        states = [str(state) for (state,) in connection.execute("select state from tool_calls")]
    assert kinds.count("internal_followup") == follow_ups
    assert states.count("succeeded") == follow_ups
    assert states.count("interrupted") == 2 - follow_ups
