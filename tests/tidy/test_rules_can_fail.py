"""Each tidy rule is shown a sample it must refuse and one it must let pass."""

from pathlib import Path

import pytest

from tests.tidy import rules

HERE = "src/holon/runtime/sample.py"


def _keys(offences: list[rules.Offence]) -> list[str]:
    return [offence.key for offence in offences]


@pytest.mark.parametrize(
    ("path", "line_count", "offends"),
    [
        pytest.param(HERE, 700, False, id="source at the cap"),
        pytest.param(HERE, 701, True, id="source over the cap"),
        pytest.param("tests/runtime/test_sample.py", 900, False, id="test at the cap"),
        pytest.param("tests/runtime/test_sample.py", 901, True, id="test over the cap"),
    ],
)
def test_a_long_file_is_refused(path: str, line_count: int, offends: bool) -> None:
    assert bool(list(rules.check_file_size(path, "x = 1\n" * line_count))) is offends


def test_a_long_function_is_refused_by_its_qualified_name() -> None:
    body = "        x = 1\n" * 60
    text = f"class Lane:\n    async def run(self):\n{body}\n    def rest(self): ...\n"
    assert _keys(list(rules.check_functions(HERE, text))) == [f"{HERE}::Lane.run"]


def test_a_function_at_the_cap_passes() -> None:
    text = "def run():\n" + "    x = 1\n" * 59
    assert list(rules.check_functions(HERE, text)) == []


@pytest.mark.parametrize(
    ("path", "offends"),
    [
        ("src/holon/runtime/utils.py", True),
        ("src/holon/core/lane.py", True),
        ("src/holon/runtime/_helpers.py", True),
        ("src/holon/runtime/turns/lane.py", False),
        ("src/holon/model/database_types_seen.py", False),
    ],
)
def test_a_drawer_name_is_refused(path: str, offends: bool) -> None:
    assert bool(list(rules.check_name(path))) is offends


def test_a_module_without_a_docstring_is_refused() -> None:
    assert list(rules.check_docstring(HERE, "x = 1\n"))
    assert not list(rules.check_docstring(HERE, '"""Owns x."""\nx = 1\n'))


@pytest.mark.parametrize(
    ("path", "text", "offends"),
    [
        ("src/holon/model/__init__.py", "", False),
        ("src/holon/model/__init__.py", "from x import y\n", True),
        ("src/holon/__init__.py", '"""Holon."""\n__version__ = "1"\n', False),
        ("src/holon/__init__.py", '__version__ = "1"\nimport os\n', True),
    ],
)
def test_an_init_that_holds_code_is_refused(path: str, text: str, offends: bool) -> None:
    assert bool(list(rules.check_init_is_empty(path, text))) is offends


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime\nx = datetime.now()\n",
        "import datetime as dt\nx = dt.datetime.utcnow()\n",
        "from datetime import date\nx = date.today()\n",
        "import time\n",
        "from time import monotonic\n",
        "from time import monotonic as tick\n",
        "def f():\n    import random\n",
        "from uuid import uuid4\n",
        "import os\nx = os.environ['HOME']\n",
        "from os import getenv\n",
        "import os as system\nx = system.getenv('HOME')\n",
        "import anyio\nasync def f():\n    await anyio.sleep(1)\n",
        "from asyncio import sleep\n",
        "import subprocess\n",
        "import secrets\n",
    ],
)
def test_an_ambient_read_is_refused_in_the_runtime(text: str) -> None:
    assert list(rules.check_ambient_reads(HERE, text))


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import UTC, datetime\nx = datetime(2020, 1, 1, tzinfo=UTC)\n",
        "def f(clock):\n    return clock.now()\n",
        "import anyio\nasync def f():\n    async with anyio.create_task_group(): ...\n",
        "from timeit import default_timer\n",
        "class Row:\n    time: int\ndef f(row):\n    return row.time\n",
        "import os.path\nx = os.path.join('a', 'b')\n",
    ],
)
def test_what_only_looks_ambient_passes(text: str) -> None:
    assert list(rules.check_ambient_reads(HERE, text)) == []


@pytest.mark.parametrize(
    ("path", "text", "offends"),
    [
        ("src/holon/adapters/system/clock.py", "import time\n", False),
        ("src/holon/cli/main.py", "import os\nx = os.environ\n", False),
        ("src/holon/cli/main.py", "import uuid\n", True),
        ("src/holon/cli/main.py", "import random\n", True),
        ("src/holon/decide/wake/hints.py", "import time\n", True),
        ("src/holon/__main__.py", "import time\n", True),
    ],
)
def test_ambient_reads_are_allowed_only_where_they_are_the_job(
    path: str, text: str, offends: bool
) -> None:
    assert bool(list(rules.check_ambient_reads(path, text))) is offends


@pytest.mark.parametrize(
    "text",
    [
        "house.rows('select count(*) from turns')\n",
        "ASKED = f'select state from waits where id = {x}'\n",
        "ALTERED = '  Update agents\\n  set gave_up = 1'\n",
        "GONE = 'delete from timers'\n",
        "MADE = 'insert into t values (1)'\n",
        "KEPT = 'pragma user_version'\n",
        "def f(connection):\n    connection.execute(SQL)\n",
    ],
)
def test_sql_outside_of_the_adapter_is_refused(text: str) -> None:
    assert list(rules.check_sql("tests/runtime/test_sample.py", text))
    assert list(rules.check_sql(HERE, text))
    for judge in ("tests/crash/load.py", "tests/support/world_oracle.py"):
        assert not list(rules.check_sql(judge, text))
    assert not list(rules.check_sql("src/holon/adapters/sqlite/agents.py", text))


@pytest.mark.parametrize(
    "text",
    [
        '"""Takes what to select from a list, and to delete from it."""\n',
        "HINT = 'begin it with a line ---; set nothing'\n",
        "def f(tool):\n    tool.executed('update the plan')\n",
    ],
)
def test_what_only_looks_like_sql_passes(text: str) -> None:
    assert list(rules.check_sql(HERE, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "# TODO later\n",
        "x = 1  # FIXME\n",
        "raise NotImplementedError\n",
        "# not yet implemented\n",
    ],
)
def test_a_mark_of_unfinished_work_is_refused(text: str) -> None:
    assert list(rules.check_finished(HERE, text))


def test_a_todo_item_of_the_domain_is_not_unfinished_work() -> None:
    assert list(rules.check_finished(HERE, "class TodoItem: ...\ntodo_list = []\n")) == []


@pytest.mark.parametrize(("count", "offends"), [(9, False), (10, True)])
def test_a_tenth_runtime_dependency_is_refused(count: int, offends: bool) -> None:
    names = ", ".join(f'"p{n}"' for n in range(count))
    found = list(rules.check_dependencies(f"[project]\ndependencies = [{names}]\n"))
    assert bool(found) is offends


@pytest.mark.parametrize(
    ("line", "offends"),
    [
        ("apsw==3.54.1.0", False),
        ("-r runtime.txt", False),
        ("# why", False),
        ("apsw>=3", True),
        ("apsw", True),
        ("--index-url somewhere", True),
        ("apsw @ file:///somewhere", True),
    ],
)
def test_only_exact_pins_pass(line: str, offends: bool) -> None:
    assert bool(list(rules.check_pins("requirements/x.txt", line))) is offends


@pytest.mark.parametrize(
    "records",
    [
        {"docs/decisions/0001-a.md": "", "docs/decisions/0001-b.md": ""},
        {"docs/decisions/1-a.md": ""},
        {"docs/decisions/0001-a.md": "line\n" * 41},
    ],
    ids=["number used twice", "name without four digits", "too long"],
)
def test_a_bad_decision_record_is_refused(records: dict[str, str]) -> None:
    assert list(rules.check_decisions(records))


def test_the_ratchet_sets_known_debts_aside_and_may_only_shrink() -> None:
    offences = [rules.Offence("a.py::f", "61 lines"), rules.Offence("b.py::g", "70 lines")]
    left = rules.settle_with_ratchet(offences, ["a.py::f", "c.py::h"])
    assert [line.split(":")[0] for line in left] == ["b.py", "c.py"]
    assert rules.settle_with_ratchet(offences, ["a.py::f", "b.py::g"]) == []


def test_every_rule_of_the_module_has_a_failing_sample_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    checks = [name for name in vars(rules) if name.startswith("check_")]
    assert checks
    assert [name for name in checks if f"rules.{name}(" not in source] == []
