"""A full disk is an answer, not an end: the host stays up, loses nothing, and goes on by itself.

The disk is a small tmpfs in a mount namespace of the host's own, so no right is needed and nothing
is left behind. From outside it is reached through /proc/<pid>/root.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from holon.testing import host_commands as ask
from holon.testing.host_client import HostClient
from tests.crash.aftermath import problems_at_rest
from tests.crash.conftest import StartHost
from tests.crash.load import Ledger, ask_together, result_of

DISK = "size=8m"
PAGE = b"\0" * 4_096
SCRIPT = {
    "rules": [
        {
            "when": "think it over",
            "rounds": [
                {"after_ms": 150, "calls": [{"name": "Enqueue", "input": {"text": "later"}}]},
                {"after_ms": 150, "text": "Thought over."},
            ],
        }
    ]
}


def _may_unshare() -> bool:
    tried = subprocess.run(
        ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None or not _may_unshare(),
    reason="this machine permits no unprivileged mount namespace",
)


def _on_small_disk(disk: Path, *, first: str = "true") -> tuple[str, ...]:
    """Return what to put before a command so that `disk` is small for it and its children."""
    disk.mkdir()
    script = f'mount -t tmpfs -o {DISK} tmpfs "$0" && ({first}) && exec "$@"'
    return ("unshare", "-Urm", "sh", "-c", script, str(disk))


def _fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(PAGE):
                pass
        except OSError:
            return filler
    return filler


def _inside(host: HostClient, disk: Path) -> Path:
    return Path(f"/proc/{host.pid}/root") / disk.relative_to("/")


@pytest.mark.requirement("crash:full-disk-is-an-answer")
def test_a_full_disk_is_refused_waited_out_and_costs_nothing(
    tmp_path: Path, start_host: StartHost
) -> None:
    disk, script, said = tmp_path / "disk", tmp_path / "script.json", tmp_path / "stderr"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    host = start_host(
        disk / "home",
        options=("--script", str(script), "--agents", "ada,bob"),
        launcher=_on_small_disk(disk),
        stderr=said,
    )
    host.wait_ready()
    ledger = Ledger()
    for agent in ("ada", "bob"):  # both are in mid-turn when the disk fills up
        prompt = ask.Prompt(id=0, agent=agent, text="think it over", key=f"before-{agent}")
        ledger.acknowledge(f"before-{agent}", host.ask(prompt))
    filler = _fill(_inside(host, disk))

    prompts = [ask.Prompt(id=0, agent="ada", text="more " * 500, key=f"k{n}") for n in range(20)]
    answers = ask_together(host, list(prompts))
    assert {a.refusal.code for a in answers if a.refusal is not None} == {"storage_full"}
    # What still fits into the last page is taken, and then it counts.
    squeezed_in = {result_of(answer)["message_id"] for answer in answers if answer.ok}
    assert host.process.poll() is None

    filler.unlink()
    for prompt in prompts:
        ledger.acknowledge(str(prompt.key), host.ask(prompt))
    assert squeezed_in <= set(ledger.acked.values())
    status = host.wait_idle(wait_s=20)
    assert status.is_idle(horizon_ms=1_000), status
    copy = tmp_path / "copy"
    shutil.copytree(
        _inside(host, disk) / "home", copy, ignore=shutil.ignore_patterns("*-shm", "lock")
    )
    assert host.terminate() == 0
    assert problems_at_rest(copy, ledger) == []
    assert said.read_text(encoding="utf-8") == ""


@pytest.mark.requirement("crash:full-disk-is-an-answer")
def test_a_home_on_a_full_disk_is_refused_in_one_sentence(
    tmp_path: Path, start_host: StartHost
) -> None:
    disk, said = tmp_path / "disk", tmp_path / "stderr"
    fill = 'dd if=/dev/zero of="$0/filler" bs=4k 2>/dev/null; true'
    host = start_host(disk / "home", launcher=_on_small_disk(disk, first=fill), stderr=said)
    assert host.join() == 2
    sentence = said.read_text(encoding="utf-8")
    assert sentence.startswith("holon: ")
    assert sentence.count("\n") == 1
    assert "full" in sentence or "No space left" in sentence
