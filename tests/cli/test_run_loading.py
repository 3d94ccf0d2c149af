"""What `holon run` loads for one exchange, seen from a process of its own.

Loading is most of what such a run takes. A module named here was loaded once and is not needed:
whoever needs it imports it where it is used.
"""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ANSWER = {"choices": [{"finish_reason": "stop", "message": {"content": "Hello yourself."}}]}
CONFIG = """
[model]
default = "here/m"
[providers.here]
transport = "openai_chat_completions"
base_url = "http://127.0.0.1:{port}"
auth = {{ source = "none" }}
"""
LOADED = """
import json, sys
from holon.__main__ import start
sys.argv = ["holon", *sys.argv[1:]]
try:
    start()
except SystemExit as ended:
    assert ended.code in (0, None), ended.code
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
UNNEEDED = (
    # what an operator asks of a service
    "holon.http",
    "holon.client",
    "holon.runtime.tasks.commands",
    "holon.runtime.agents.inspection",
    "holon.runtime.guidance.skills",
    "holon.runtime.wake.timers",
    "holon.runtime.wake.triggers",
    "holon.runtime.wake.hints",
    "holon.runtime.work.service",
    "holon.runtime.workspaces.service",
    # what a call of a tool needs
    "holon.adapters.files.replacement",
    "holon.decide.guidance.command_words",
    "holon.decide.providers.lenient_arguments",
    "holon.runtime.guidance.skill_watch",
    # skills, templates and the memory index
    "holon.adapters.files.archives",
    "holon.adapters.files.skill_front_matter",
    "holon.adapters.sqlite.memory_index.index",
    # time zones
    "holon.decide.wake.cron",
    "zoneinfo",
    # the rarer ways to a model and to a credential
    "holon.adapters.providers.external_credentials",
    "holon.adapters.providers.openai_responses",
    "holon.adapters.providers.anthropic_messages",
    "holon.adapters.providers.scripted",
    "holon.adapters.providers.http.traced",
    "httpx2",
    # what is said and kept elsewhere
    "difflib",
    "holon.adapters.exec.end_now",
    "holon.adapters.system.journal",
    "holon.wire.codec",
)


class Model(BaseHTTPRequestHandler):
    """Answers everything with the same words."""

    def do_POST(self) -> None:
        """Take the request and answer it."""
        self.rfile.read(int(self.headers["content-length"]))
        said = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The modules in a process that ran one exchange in a new home."""
    home = tmp_path_factory.mktemp("run")
    around = {name: value for name, value in os.environ.items() if not name.startswith("HOLON_")}
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        (home / "config.toml").write_text(CONFIG.format(port=server.server_port), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", LOADED, "run", "hi"],
            env={**around, "HOME": str(home), "HOLON_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        server.shutdown()
    assert (done.returncode, done.stdout) == (0, "Hello yourself.\n"), done.stderr
    return frozenset(json.loads(done.stderr))


@pytest.mark.parametrize("name", UNNEEDED)
def test_a_run_of_one_exchange_does_not_load(name: str, loaded: frozenset[str]) -> None:
    assert not {each for each in loaded if each == name or each.startswith(f"{name}.")}


def test_the_look_sees_what_a_run_does_load(loaded: frozenset[str]) -> None:
    assert {
        "holon.runtime.host",
        "holon.adapters.providers.openai_chat.answer",
        "asyncio",
    } <= loaded


def test_every_module_of_ours_that_is_named_exists() -> None:
    root = Path(__file__).parents[2] / "src"
    for name in (each for each in UNNEEDED if each.startswith("holon.")):
        path = root / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), name
