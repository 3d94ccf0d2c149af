"""The operator's commands as real processes, beside a real runtime and beside none."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest
from click.testing import CliRunner

from holon.cli.console import exit_codes
from holon.cli.main import main
from tests.cli.operator_desk import PATIENCE_S, Desk
from tests.daemon.driving import Place

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
TALKING = [
    ("prompt", "hello"),
    ("status",),
    ("tail",),
    ("transcript",),
    ("events", "tail"),
    ("events", "stream"),
    ("task", "run", "x", "--cmd", "true"),
    ("task", "list"),
    ("task", "status", "x"),
    ("task", "output", "x"),
    ("task", "input", "x", "--text", "y"),
    ("task", "stop", "x"),
    ("timer", "create", "--after-ms", "1000"),
    ("timer", "list"),
    ("timer", "cancel", "x"),
    ("work-item", "list"),
    ("work-item", "get", "x"),
    ("work-item", "create", "x"),
    ("work-item", "update", "x", "--unblock"),
    ("work-item", "pick", "x"),
    ("work-item", "complete", "x"),
    ("agent", "list"),
    ("agent", "status"),
    ("agent", "create", "x"),
    ("agent", "start", "x"),
    ("agent", "stop", "x"),
    ("agent", "abort", "x"),
    ("agent", "model", "get"),
    ("agent", "model", "set", "a/b"),
    ("agent", "model", "clear"),
    ("trigger", "list"),
    ("trigger", "url"),
    ("trigger", "rotate"),
    ("trigger", "revoke"),
    ("workspace", "list"),
    ("workspace", "attach", "/"),
    ("workspace", "exit"),
    ("workspace", "detach", "x"),
]
LOADED = """
import sys
from holon.cli.main import main
try:
    main(sys.argv[1:], prog_name="holon")
except SystemExit as ended:
    assert ended.code in (0, None), ended.code
heavy = ("apsw", "anyio", "asyncio", "httpx2", "h11", "ssl", "email", "json", "inspect_")
ours = ("holon.runtime", "holon.decide", "holon.projections", "holon.adapters.sqlite")
print([name for name in sys.modules if name.partition(".")[0] in heavy or name.startswith(ours)],
      file=sys.stderr)
"""


@pytest.fixture
def place() -> Iterator[Place]:
    """A home on a short path: that of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="holon-c-", ignore_cleanup_errors=True) as folder:
        yield Place(Path(folder))


@pytest.mark.requirement("operator-cli:no-runtime-is-said")
@pytest.mark.parametrize("command", TALKING, ids=" ".join)
def test_without_a_runtime_every_command_says_so_and_how_to_start_one(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    environ = {"HOLON_HOME": str(tmp_path / "none"), "HOLON_HTTP_ADDR": None}
    done = CliRunner().invoke(main, [*command], env=environ)
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert done.stderr.splitlines() == [
        f"holon: no runtime is running for {tmp_path / 'none'}",
        "       start one with: holon daemon start",
    ]
    assert not (tmp_path / "none").exists()


def test_an_address_that_is_none_is_bad_usage(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["status", "--home", str(tmp_path), "--connect", "nowhere"])
    assert done.exit_code == exit_codes.UNUSABLE
    assert "unix:/path" in done.stderr


@pytest.mark.requirement("operator-cli:agent-scoped-inspection")
def test_a_prompt_is_answered_and_seen_by_later_commands(place: Place) -> None:
    with place.serving():
        asked = place.holon("prompt", "--wait", "hello")
        assert (asked.returncode, asked.stdout) == (0, "Hello yourself.\n"), asked.stderr
        assert "Hello yourself." in place.holon("tail").stdout
        assert place.told("status")["agent"]["turn_index"] == 1
        assert place.told("transcript")["turns"][0]["turn_index"] == 1


def _hear_ctrl_c() -> None:
    """A shell that runs the tests in the background lets its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_what_happens_is_followed_as_it_happens(place: Place) -> None:
    with (
        place.serving(),
        subprocess.Popen(
            [sys.executable, "-m", "holon", "tail", "--follow", "--json"],
            env=place.environ(),
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_ctrl_c,
        ) as following,
    ):
        assert following.stdout is not None
        try:
            assert place.holon("prompt", "hello").returncode == 0
            assert select([following.stdout], [], [], PATIENCE_S)[0], "nothing came"
            seen = json.loads(following.stdout.readline())
            following.send_signal(signal.SIGINT)
            assert following.wait(PATIENCE_S) == exit_codes.INTERRUPTED
        finally:
            following.kill()
        assert (seen["category"], seen["body"]) == ("brief", "Hello yourself.")


async def test_status_loads_no_more_than_a_call_needs(desk: Desk) -> None:
    from anyio import run_process

    connect = f"unix:{desk.server.local.socket_path}"
    command = [sys.executable, "-c", LOADED, "status", "--connect", connect]
    done = await run_process(command, check=False)
    assert done.stderr == b"[]\n"
    assert b"main" in done.stdout


@pytest.mark.requirement("operator-cli:troubleshooting-order")
def test_the_guide_names_the_entry_points_in_the_products_order() -> None:
    text = (ROOT / "docs" / "howto" / "troubleshoot.md").read_text(encoding="utf-8")
    order = [
        "holon run --json",
        "holon daemon status\n",
        "holon daemon logs\n",
        "holon status --agent",
        "holon tail --agent NAME  ",
        "holon transcript --agent",
        "--follow",
        "holon serve\n",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


@pytest.mark.parametrize("guide", ["run-a-daemon", "wake-an-agent-from-ci", "troubleshoot"])
def test_every_command_a_guide_names_exists(guide: str) -> None:
    lines = (ROOT / "docs" / "howto" / f"{guide}.md").read_text(encoding="utf-8").splitlines()
    named = [line.split() for line in lines if line.startswith("holon ")]
    assert named
    for words in named:
        command: object = main
        for word in words[1:]:
            if not hasattr(command, "get_command") or word.startswith("-"):
                break
            command = command.get_command(None, word)
            assert command is not None, " ".join(words)
