"""A daemon of the story, and the `holon` commands that speak to it.

Owns:  starting and ending it, and how its answers are read.
Rule 1: everything goes through the `holon` command, each time as a new process: nothing is
        remembered between two of them but what the service keeps.
"""

import json
import socket
from pathlib import Path

from holon.model.values import JsonValue
from scripts.demo.command_line import HOLON, ran
from scripts.demo.narrator import REHEARSALS, Narrator, StoryBrokenError


class Daemon:
    """One runtime that runs without a terminal; its model follows a rehearsed script."""

    def __init__(self, folder: Path, say: Narrator, *, script: str) -> None:
        self.folder = folder
        self._say = say
        self._script = script
        self._port = str(_free_port())

    def start(self) -> None:
        """Start it, whatever is there already."""
        self.holon("config", "set", "model.default", f"scripted/{REHEARSALS / self._script}.yaml")
        self.told("daemon", "start", "--port", self._port)

    def end(self) -> None:
        """Whatever happened, leave no service behind."""
        ran(self.folder, HOLON, "daemon", "stop")

    def status(self) -> dict[str, JsonValue]:
        """Say how it is, also when it is not."""
        return _object(ran(self.folder, HOLON, "daemon", "status", "--json").stdout)

    def answer(self, *command: str) -> dict[str, JsonValue]:
        """Run a command and return the object it prints."""
        return _object(self.holon(*command, "--json"))

    def told(self, *command: str) -> str:
        """Run a command in front of everybody."""
        self._say.tell(f"holon {' '.join(_quoted(word) for word in command)}")
        return self.holon(*command)

    def holon(self, *command: str) -> str:
        """Run a command that must succeed, and return what it prints."""
        done = ran(self.folder, HOLON, *command)
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
