"""What other processes of the same user can see of a process that keeps to itself."""

import os
import subprocess
import sys

import pytest

SECRET = "sk-a-key-that-must-not-be-read"
KEPT = "something-harmless"
# Run as a user without privileges, also where the tests are root: a first process looks at the
# memory and the environment of a second one of the same user, which it has forked.
LOOK = """
import ctypes, os, resource, sys
from holon.adapters.system.processes import become_unreadable, forget_variables

hides, forgets = sys.argv[1] == "hides", sys.argv[2] == "forgets"
if os.geteuid() == 0 and not forgets:  # only root may still look where it is asked to forget
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # changing the user has made us unreadable already
is_ready, tell = os.pipe()
may_end, end = os.pipe()
child = os.fork()
if child == 0:
    os.close(end)
    if forgets:
        forget_variables(["A_KEY", "GONE_ALREADY"])
        assert "A_KEY" not in os.environ and os.environ["KEPT"]
    if hides:
        assert become_unreadable()
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
    os.write(tell, b".")
    os.read(may_end, 1)
    os._exit(0)
os.close(may_end)
os.read(is_ready, 1)
for name in ("environ", "mem"):
    try:
        file = os.open(f"/proc/{child}/{name}", os.O_RDONLY)
        print(name, os.read(file, 1 << 20) if name == "environ" else "open")
    except PermissionError:
        print(name, "denied")
with open(f"/proc/{child}/stat") as file:  # what a supervisor or a status command needs
    print("stat", bool(file.read()))
os.kill(child, 0)
os.close(end)
os.waitpid(child, 0)
"""

# The service keeps to itself before it has read its settings, which say what is to be forgotten.
FORGET_WHILE_HIDDEN = """
import ctypes, os
from holon.adapters.system.processes import become_unreadable, forget_variables

if os.geteuid() == 0:
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
assert become_unreadable()
forget_variables(["A_KEY"])
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
with open("/proc/self/environ") as file:
    print(file.read())
"""


def look(hides: str, forgets: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in said_by(LOOK, hides, forgets).splitlines())


def said_by(script: str, *arguments: str) -> str:
    environ = {"PATH": os.environ["PATH"], "A_KEY": SECRET, "KEPT": KEPT}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("own-commands:the-service-cannot-be-read")
def test_a_process_of_the_same_user_reads_neither_memory_nor_environment() -> None:
    seen = look("hides", "remembers")
    assert (seen["environ"], seen["mem"]) == ("denied", "denied")
    assert seen["stat"] == "True", "who it is can still be seen"


def test_without_it_the_same_process_reads_both() -> None:
    seen = look("shows", "remembers")
    assert SECRET in seen["environ"]
    assert seen["mem"] == "open"


@pytest.mark.requirement("own-commands:keys-leave-the-environment")
def test_a_variable_that_is_forgotten_is_not_shown_by_the_kernel_either() -> None:
    seen = look("shows", "forgets")
    assert SECRET not in seen["environ"]
    assert f"A_KEY={'x' * len(SECRET)}" in seen["environ"], "overwritten where it stood"
    assert KEPT in seen["environ"]


@pytest.mark.requirement("own-commands:keys-leave-the-environment")
def test_a_process_without_privileges_forgets_also_once_it_cannot_be_read() -> None:
    shown = said_by(FORGET_WHILE_HIDDEN)
    assert SECRET not in shown
    assert f"A_KEY={'x' * len(SECRET)}" in shown
    assert KEPT in shown
