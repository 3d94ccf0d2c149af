"""Skills in use: what a sound database holds of them, and faults that are seen."""

from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest

from holon.adapters.sqlite.check.checker import check_database
from tests.adapters.sqlite.check.story import plant, tell

USED_AGAIN = (
    '{"kind":"skill_activated","skill_name":"s","load_reason":"read_skill_md",'
    '"path":"/s/SKILL.md","entrypoint_path":"/s/SKILL.md","turn_id":"turn_2",'
    '"was_session_active":true}'
)
OTHER = USED_AGAIN.replace("/s/", "/t/").replace("true", "false")
AGAIN = "update skill_activations set state = 'turn_active', turn_id = 'turn_2'"


@pytest.mark.requirement("skills:promoted-in-silence")
def test_a_skill_a_completed_turn_used_is_kept_in_silence_and_the_check_agrees(
    database: Path,
) -> None:
    report = check_database(database)
    assert report.violations == ()
    assert report.counts["skill_activations"] == 1
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as rows:
        assert rows.execute("select state, turn_id from skill_activations").fetchall() == [
            ("session_active", "turn_1")
        ]
        told = rows.execute("select event from events where event like '%skill%'").fetchall()
    [event] = [msgspec.json.decode(str(text)) for (text,) in told]
    assert (event["kind"], event["turn_id"]) == ("skill_activated", "turn_1")


def test_a_skill_the_open_turn_uses_again_is_sound(database: Path) -> None:
    plant(database, AGAIN, tell("main", USED_AGAIN))
    assert check_database(database).violations == ()


FAULTS = [
    ([AGAIN.replace("turn_2", "turn_1"), tell("main", USED_AGAIN)], "which is not open"),
    (["update skill_activations set source = 'x'"], "as session_active for read_skill_md (x)"),
    ([AGAIN], "is session_active in the log and turn_active_again in its row"),
    (["delete from skill_activations"], "is session_active in the log, but it has no row"),
    ([tell("main", OTHER)], "skill read_skill_md /t/SKILL.md is turn_active in the log"),
    (["update skill_activations set agent_id = 'other'"], "but no event tells of it"),
]


@pytest.mark.parametrize(("statements", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_a_fault_is_seen(database: Path, statements: list[str], said: str) -> None:
    plant(database, *statements)
    assert any(said in str(each) for each in check_database(database).violations)
