"""No read walks a whole table: cost follows what is asked for, not what is stored."""

import re
from typing import Final

import pytest

from holon.adapters.sqlite.database.statements import named_queries, split_queries
from tests.adapters.sqlite.raw_rows import a_writer

FAMILIES: Final = (
    "reads_agents",
    "reads_queue",
    "reads_wheel",
    "reads_usage",
    "pace",
    "reads_records",
    "reads_work",
    "reads_surface",
    "reads_history",
    "reads_workspaces",
    "workspaces",
    "contexts",
    "instructions",
    "reads_skills",
    "skills",
    "retention",
    "commit_retention",
    "memory_retention",
)

# What may be walked from end to end: indexes that hold only unfinished rows, parked hints (each a
# reason to wake somebody), the keys it is handed, and what a query has just put together itself.
WALKED: Final = re.compile(
    r"SCAN (wake_hints USING|messages USING COVERING INDEX messages_one_claim_per_agent"
    r"|turns USING COVERING INDEX turns_one_open_per_agent|tasks USING INDEX tasks_open"
    r"|work_items USING INDEX work_items_(runnable|needing_input)"
    r"|waiting|w$|up$|o$|last_one$|ahead$"
    r"|agents USING (COVERING )?INDEX agents_up|tasks USING INDEX tasks_open_by_agent"
    r"|messages USING INDEX messages_(unread_results|unseen)"
    r"|m USING COVERING INDEX messages_unseen"
    r"|skill_activations USING (COVERING )?INDEX skill_activations_to_restore"
    r"|waits USING INDEX waits_visible|briefs USING INDEX briefs_failed$"
    r"|(g|json_each) VIRTUAL TABLE|\(subquery|\(join|CONSTANT ROW)"
)
# These walk no further than they are told to.
BATCHED: Final = frozenset({"agent_count", "statuses", "kept"})

QUERIES: Final = [item for family in FAMILIES for item in named_queries(family).items()]


@pytest.mark.parametrize(("name", "sql"), QUERIES, ids=[name for name, _ in QUERIES])
def test_no_query_walks_a_whole_table(name: str, sql: str) -> None:
    connection, _ = a_writer()
    numbers = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    bound = dict.fromkeys(re.findall(r":(\w+)", sql), 0) or (0,) * max(numbers, default=0)
    plan = [str(row[-1]) for row in connection.execute(f"explain query plan {sql}", bound)]
    walked = [step for step in plan if step.startswith("SCAN") and not WALKED.match(step)]
    assert walked == [] or name in BATCHED


def test_a_name_given_twice_is_found_at_once() -> None:
    with pytest.raises(ValueError, match="names one twice"):
        split_queries("-- one --\nselect 1;\n-- one --\nselect 2;\n", family="x")


def test_comments_in_a_block_are_for_people() -> None:
    found = split_queries("-- one --\n-- why\nselect 1;\n\n-- two --\nselect 2\n", family="x")
    assert dict(found) == {"one": "select 1", "two": "select 2"}


def test_counting_agents_passes_over_archived_ones_without_walking_them() -> None:
    connection, _ = a_writer()
    counting = named_queries("reads_usage")["agent_count"]
    plan = connection.execute(f"explain query plan {counting}", (9,)).fetchall()
    assert any("agents_in_use" in str(step[-1]) for step in plan)
