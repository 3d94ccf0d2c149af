"""A service does not depend on files that an upgrade may replace under it."""

import subprocess
import sys
from typing import Final

import pytest

from holon.serve.foreground import load_whole_program, names_of_a_service

_LOADS: Final = """
import sys
import holon.serve.foreground
from holon.serve.foreground import load_whole_program, names_of_a_service
assert "holon.tools.workspaces.patching.plan" not in sys.modules, "else nothing is shown here"
print(load_whole_program())
print([name for name in names_of_a_service() if name not in sys.modules])
"""


def test_nothing_a_service_may_need_is_left_to_load() -> None:
    program = [sys.executable, "-c", _LOADS]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["{}", "[]"]


def test_what_a_service_may_need_is_all_but_the_other_programs() -> None:
    names = set(names_of_a_service())
    assert {"holon.runtime.host", "holon.http.app", "holon.adapters.sqlite.store"} <= names
    assert not [name for name in names if name.split(".")[1] in ("cli", "testing", "client")]


def test_a_part_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "holon.tools.workspaces.patching.plan", None)
    assert list(load_whole_program()) == ["holon.tools.workspaces.patching.plan"]
