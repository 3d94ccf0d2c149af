"""Chapters on a service: a runtime that outlives its terminals, and the machine's bad days.

Owns:  the story of a daemon. It is started, an agent is made and asked, somebody outside wakes it,
       the daemon is killed and started again, and nothing that was accepted is lost.
"""

import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from scripts.demo.command_line import HOLON, check_home, home_in, ran
from scripts.demo.daemon import Daemon
from scripts.demo.looking import until_seen
from scripts.demo.narrator import Narrator

AGENT: Final = "watcher"
WOKEN: Final = "The build is red: I was woken for it."


def tell_of_a_service(folder: Path, say: Narrator) -> None:
    """Tell the chapters; raises when a part of them does not hold."""
    daemon = Daemon(folder, say, script="service")
    story = _Service(daemon, say)
    try:
        story.is_started()
        story.is_asked()
        story.is_woken_from_outside()
        story.is_killed_and_started_again()
    finally:
        daemon.end()
    check_home(home_in(folder), say)


class _Service:
    """The story of one daemon."""

    def __init__(self, daemon: Daemon, say: Narrator) -> None:
        self._daemon = daemon
        self._say = say

    def is_started(self) -> None:
        """The runtime runs without a terminal."""
        self._say.chapter("The runtime becomes a service")
        self._daemon.start()
        status = self._daemon.status()
        self._say.check(status["state"] == "running", f"it runs as process {status['pid']}")
        self._daemon.start()
        self._say.check(
            self._daemon.status()["pid"] == status["pid"], "started twice, it is still the same one"
        )

    def is_asked(self) -> None:
        """An operator makes an agent, asks it, leaves, and comes back."""
        self._say.chapter("An operator asks, leaves and comes back")
        self._daemon.told("agent", "create", AGENT)
        answer = self._daemon.told("prompt", "--agent", AGENT, "--wait", "Watch the build.")
        self._say.check("Wake me" in answer, f"the agent: “{answer.strip()}”")
        seen = self._daemon.told("tail", "--agent", AGENT)
        self._say.check("Wake me" in seen, "another terminal sees the same with holon tail")

    def is_woken_from_outside(self) -> None:
        """Whoever has the agent's trigger URL can wake it, and nothing else."""
        self._say.chapter("Somebody outside wakes the agent")
        url = str(self._daemon.answer("trigger", "url", "--agent", AGENT)["url"])
        shown = url[: url.rindex("/") + 8]
        self._say.tell(f"curl -d 'the build is red' {shown}…")
        status = _post(url, b"the build is red")
        self._say.check(status == 200, f"the delivery is durable: {status}")
        until_seen(lambda: WOKEN in self._daemon.holon("tail", "--agent", AGENT), "the agent wakes")
        self._say.check(True, f"the agent: “{WOKEN}”")
        self._say.check(_post(f"{url}x", b"") == 404, "a URL that is only nearly right is none")

    def is_killed_and_started_again(self) -> None:
        """A killed service goes on where it was."""
        self._say.chapter("The service is killed and started again")
        pid = int(str(self._daemon.status()["pid"]))
        os.kill(pid, signal.SIGKILL)
        self._say.tell(f"kill -9 {pid}")
        until_seen(lambda: self._daemon.status()["state"] != "running", "the service is gone")
        asked = ("prompt", "--agent", AGENT, "Are you still there?")
        refused = ran(self._daemon.folder, HOLON, *asked)
        self._say.check(
            refused.returncode == 1 and "daemon start" in refused.stderr,
            f"nobody answers: {refused.stderr.strip().splitlines()[0]}",
        )
        self._daemon.start()
        answer = self._daemon.told("prompt", "--agent", AGENT, "--wait", "Are you still there?")
        self._say.check("Still here" in answer, f"the agent: “{answer.strip()}”")
        self._daemon.told("daemon", "stop")
        self._say.check(
            self._daemon.status()["state"] == "stopped", "stopped, it leaves nothing running"
        )


def _post(url: str, body: bytes) -> int:
    request = urllib.request.Request(url, data=body, headers={"content-type": "text/plain"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
