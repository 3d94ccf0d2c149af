"""Chapters on a service: a runtime that outlives its terminals, and the machine's bad days.

Owns:  the story of a daemon. It is started, an agent is made and asked, somebody outside wakes it,
       the daemon is killed and started again, and nothing that was accepted is lost.
Rule 1: everything goes through the `holon` command, each time as a new process: nothing is
        remembered between two of them but what the service keeps.
"""

import json
import os
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from holon.model.json_value import JsonValue
from scripts.demo.command_line import HOLON, check_home, home_in, ran
from scripts.demo.looking import until_seen
from scripts.demo.narrator import REHEARSALS, Narrator, StoryBrokenError

AGENT: Final = "watcher"
WOKEN: Final = "The build is red: I was woken for it."


def tell_of_a_service(folder: Path, say: Narrator) -> None:
    """Tell the chapters; raises when a part of them does not hold."""
    story = _Service(folder, say)
    try:
        story.is_started()
        story.is_asked()
        story.is_woken_from_outside()
        story.is_killed_and_started_again()
    finally:
        story.end()
    check_home(home_in(folder), say)


class _Service:
    """The story of one daemon."""

    def __init__(self, folder: Path, say: Narrator) -> None:
        self._folder = folder
        self._say = say
        self._port = str(_free_port())

    def is_started(self) -> None:
        """The runtime runs without a terminal."""
        self._say.chapter("The runtime becomes a service")
        script = f"scripted/{REHEARSALS / 'service'}.yaml"
        self._holon("config", "set", "model.default", script)
        self._told("daemon", "start", "--port", self._port)
        status = self._status()
        self._say.check(status["state"] == "running", f"it runs as process {status['pid']}")
        self._told("daemon", "start", "--port", self._port)
        self._say.check(
            self._status()["pid"] == status["pid"], "started twice, it is still the same one"
        )

    def is_asked(self) -> None:
        """An operator makes an agent, asks it, leaves, and comes back."""
        self._say.chapter("An operator asks, leaves and comes back")
        self._told("agent", "create", AGENT)
        answer = self._told("prompt", "--agent", AGENT, "--wait", "Watch the build.")
        self._say.check("Wake me" in answer, f"the agent: “{answer.strip()}”")
        seen = self._told("tail", "--agent", AGENT)
        self._say.check("Wake me" in seen, "another terminal sees the same with holon tail")

    def is_woken_from_outside(self) -> None:
        """Whoever has the agent's trigger URL can wake it, and nothing else."""
        self._say.chapter("Somebody outside wakes the agent")
        url = str(self._answer("trigger", "url", "--agent", AGENT)["url"])
        shown = url[: url.rindex("/") + 8]
        self._say.tell(f"curl -d 'the build is red' {shown}…")
        status = _post(url, b"the build is red")
        self._say.check(status == 200, f"the delivery is durable: {status}")
        until_seen(lambda: WOKEN in self._holon("tail", "--agent", AGENT), "the agent wakes")
        self._say.check(True, f"the agent: “{WOKEN}”")
        self._say.check(_post(f"{url}x", b"") == 404, "a URL that is only nearly right is none")

    def is_killed_and_started_again(self) -> None:
        """A killed service goes on where it was."""
        self._say.chapter("The service is killed and started again")
        pid = int(str(self._status()["pid"]))
        os.kill(pid, signal.SIGKILL)
        self._say.tell(f"kill -9 {pid}")
        until_seen(lambda: self._status()["state"] != "running", "the service is gone")
        refused = ran(self._folder, HOLON, "prompt", "--agent", AGENT, "Are you still there?")
        self._say.check(
            refused.returncode == 1 and "daemon start" in refused.stderr,
            f"nobody answers: {refused.stderr.strip().splitlines()[0]}",
        )
        self._told("daemon", "start", "--port", self._port)
        answer = self._told("prompt", "--agent", AGENT, "--wait", "Are you still there?")
        self._say.check("Still here" in answer, f"the agent: “{answer.strip()}”")
        self._told("daemon", "stop")
        self._say.check(self._status()["state"] == "stopped", "stopped, it leaves nothing running")

    def end(self) -> None:
        """Whatever happened, leave no service behind."""
        ran(self._folder, HOLON, "daemon", "stop")

    def _status(self) -> dict[str, JsonValue]:
        return _object(ran(self._folder, HOLON, "daemon", "status", "--json").stdout)

    def _answer(self, *command: str) -> dict[str, JsonValue]:
        return _object(self._holon(*command, "--json"))

    def _told(self, *command: str) -> str:
        self._say.tell(f"holon {' '.join(_quoted(word) for word in command)}")
        return self._holon(*command)

    def _holon(self, *command: str) -> str:
        done = ran(self._folder, HOLON, *command)
        if done.returncode != 0:
            raise StoryBrokenError(f"holon {command[0]}: {done.stderr.strip()}")
        return done.stdout


def _object(text: str) -> dict[str, JsonValue]:
    told = json.loads(text)
    if not isinstance(told, dict):
        raise StoryBrokenError(f"not an object: {text!r}")
    return told


def _quoted(word: str) -> str:
    return f"“{word}”" if " " in word else word


def _post(url: str, body: bytes) -> int:
    request = urllib.request.Request(url, data=body, headers={"content-type": "text/plain"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
