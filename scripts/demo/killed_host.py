"""The first chapters: a host is asked, woken, stopped, killed in mid-turn and started again.

Owns:  the story of one home with `holon serve` on it, asked over HTTP. Each step is read from the
       home as it happens.
Rule 1: what is told is read from the host's own events and answers, never assumed.
"""

import time
from pathlib import Path
from typing import Final

from holon.model.values import JsonValue
from holon.wire.codec import json_of
from scripts.demo.command_line import check_home
from scripts.demo.looking import briefs_of, events_of, until_seen
from scripts.demo.narrator import REHEARSALS, Narrator, StoryBrokenError
from tests.support.served_host import Reply, ServedHost

AGENT: Final = "main"
SCRIPT: Final = REHEARSALS / "office.json"


def tell_of_a_killed_host(home: Path, say: Narrator) -> None:
    """Tell the chapters on one home; raises when a part of them does not hold."""
    say.chapter("A host starts on an empty home")
    office = _Office(home, say)
    try:
        office.prompt_leads_to_turn_and_brief()
        office.timer_leads_to_turn()
        office.stopped_agent_refuses()
        turn = office.killed_in_mid_turn()
        office.finishes_after_restart(turn)
        office.everything_holds()
    finally:
        office.end()


class _Office:
    """The story, on one home."""

    def __init__(self, home: Path, narrator: Narrator) -> None:
        self._home = home
        self._say = narrator
        self._host = self._start()

    def _start(self) -> ServedHost:
        host = ServedHost(
            self._home,
            environ={"HOLON_MODEL": f"scripted/{SCRIPT}"},
            stderr=self._home.with_name("stderr"),
        )
        host.wait_ready()
        ready_s = time.monotonic() - host.started_at
        self._say.check(True, f"process {host.pid} is ready after {ready_s:.2f} s")
        return host

    def end(self) -> None:
        """Leave no process behind."""
        self._host.kill()

    def prompt_leads_to_turn_and_brief(self) -> None:
        """An operator prompt, a tool call, a brief, and the follow-up the tool left."""
        self._say.chapter("The operator asks for something")
        message = self._prompt("Prepare the release notes.")
        turn = self._turn_of(message)
        self._say.check(True, f"turn {turn} begins")
        tool = self._event("tool_executed", turn_id=turn)
        self._say.check(True, f"the model calls {tool['tool_name']}: a follow-up to itself")
        self._say_brief(turn, "The release notes are drafted.")
        follow_up = self._event("message_admitted", message_kind="internal_followup")
        later_turn = self._turn_of(str(follow_up["message_id"]))
        self._say_brief(later_turn, "Proofread: two typos fixed.")

    def timer_leads_to_turn(self) -> None:
        """A timer fires and becomes a turn."""
        self._say.chapter("A timer fires")
        armed = {"duration_ms": 400, "summary": "look at the build"}
        timer = self._ok("timers", armed).at("timer", "id")
        self._say.check(True, f"{timer} is armed for 0.4 s from now")
        self._event("timer_fired", timer_id=timer)
        tick = self._event("message_admitted", message_kind="timer_tick")
        self._say.check(True, f"it came due and queued {tick['message_id']}")
        self._say_brief(self._turn_of(str(tick["message_id"])), "The nightly build is green.")

    def stopped_agent_refuses(self) -> None:
        """A refusal says what to do next."""
        self._say.chapter("A stopped agent says no, and how to go on")
        self._ok("stop")
        refusal = self._asked("prompt", {"text": "Anyone there?"})
        self._say.check(refusal.code == "agent_stopped", f"refused: {refusal.at('error')}")
        way = f"{refusal.at('hint')} ({refusal.at('resume_path')})"
        self._say.check(bool(refusal.at("hint")), f"hint: {way}")
        self._ok("start")
        self._say.check(True, "resumed by the operator")

    def killed_in_mid_turn(self) -> str:
        """Kill the process while its model is thinking; returns the turn that was cut off."""
        self._say.chapter("The process is killed in the middle of a turn")
        turn = self._turn_of(self._prompt("Draft the announcement."))
        self._event("tool_executed", turn_id=turn)
        self._say.check(True, f"turn {turn} has made its tool call; now the model thinks")
        self._say.check(not _events(self._home, "turn_terminal", turn_id=turn), "the turn is open")
        pid, code = self._host.pid, self._host.kill()
        self._say.check(code == -9, f"kill -9 {pid}: gone without a word (exit {code})")
        return turn

    def finishes_after_restart(self, turn: str) -> None:
        """The same turn goes on where it was."""
        self._say.chapter("It is started again")
        self._host = self._start()
        began = time.monotonic()
        resumed = self._event("recovery_turn_started", turn_id=turn)
        self._say.check(True, f"{turn} goes on (resume {resumed['resume_count']})")
        self._say_brief(turn, "The announcement is drafted.")
        self._say.tell(f"settled {time.monotonic() - began:.1f} s after the restart")
        until_seen(lambda: "Set for nine." in _brief_texts(self._home), "its follow-up")
        follow_ups = _brief_texts(self._home).count("Set for nine.")
        self._say.check(follow_ups == 1, "the tool call before the kill had its effect once")
        figures = self._host.get("/metrics").body.decode().splitlines()
        has_none = any(
            line in ("holon_rescues_total 0", "holon_rescues_total 0.0") for line in figures
        )
        self._say.check(has_none, "and nobody had to be reminded of anything")

    def everything_holds(self) -> None:
        """Look at the database from outside."""
        self._say.chapter("Looking at the database from outside")
        code = self._host.terminate()
        self._say.check(code == 0, f"SIGTERM ends the host in good order (exit {code})")
        check_home(self._home, self._say)

    def _prompt(self, text: str) -> str:
        began = time.monotonic()
        message = str(self._ok("prompt", {"text": text}).at("message_id"))
        took_ms = (time.monotonic() - began) * 1_000
        self._say.tell(f"“{text}”")
        self._say.check(True, f"{message} is on disk after {took_ms:.0f} ms")
        return message

    def _asked(self, what: str, body: JsonValue = None) -> Reply:
        return self._host.post(f"/control/agents/{AGENT}/{what}", body)

    def _ok(self, what: str, body: JsonValue = None) -> Reply:
        reply = self._asked(what, body)
        if not reply.ok:
            raise StoryBrokenError(f"{what} was refused: {reply.at('error')}")
        return reply

    def _turn_of(self, message: str) -> str:
        return str(self._event("turn_started", message_id=message)["turn_id"])

    def _say_brief(self, turn: str, text: str) -> None:
        self._event("turn_terminal", turn_id=turn)
        texts = _brief_texts(self._home, turn)
        self._say.check(texts == [text], f"brief of {turn}: “{' / '.join(texts)}”")

    def _event(self, kind: str, **fields: JsonValue) -> dict[str, JsonValue]:
        """Wait for an event of this kind with these fields."""
        return until_seen(lambda: _events(self._home, kind, **fields), kind)[0]


def _brief_texts(home: Path, turn: str | None = None) -> list[str]:
    briefs = briefs_of(home, AGENT)
    return [brief.text for brief in briefs if turn in (None, brief.turn_id)]


def _events(home: Path, kind: str, **fields: JsonValue) -> list[dict[str, JsonValue]]:
    """The events of this kind with these fields, oldest first."""
    wanted = {"kind": kind, **fields}
    told = (json_of(event) for event in events_of(home, AGENT))
    return [
        event
        for event in told
        if isinstance(event, dict) and all(event.get(k) == v for k, v in wanted.items())
    ]
