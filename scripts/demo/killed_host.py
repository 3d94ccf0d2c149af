"""The first chapters: a host is asked, woken, stopped, killed in mid-turn and started again.

Owns:  the story of one home with a host on it that is driven by lines of JSON, so that every step
       can be seen as it happens.
Rule 1: what is told is read from the host's own events and answers, never assumed.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from holon.model.json_value import JsonValue
from holon.testing import host_commands as ask
from holon.testing.host_client import HostClient
from scripts.demo.command_line import check_home
from scripts.demo.narrator import REHEARSALS, Narrator, StoryBrokenError

AGENT: Final = "main"
SCRIPT: Final = REHEARSALS / "office.json"
STEP_S_MAX: Final = 15.0


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
        self._cursor = 0
        self._host = self._start()

    def _start(self) -> HostClient:
        host = HostClient(
            self._home,
            options=("--agents", AGENT, "--script", str(SCRIPT)),
            stderr=self._home.with_name("stderr"),
        )
        host.wait_ready()
        host.send(ask.Follow(id=0, agent=AGENT, after=self._cursor))
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
        timer = self._ok(
            ask.ArmTimer(id=0, agent=AGENT, after_ms=400, summary="look at the build")
        )["timer_id"]
        self._say.check(True, f"{timer} is armed for 0.4 s from now")
        self._event("timer_fired", timer_id=timer)
        tick = self._event("message_admitted", message_kind="timer_tick")
        self._say.check(True, f"it came due and queued {tick['message_id']}")
        self._say_brief(self._turn_of(str(tick["message_id"])), "The nightly build is green.")

    def stopped_agent_refuses(self) -> None:
        """A refusal says what to do next."""
        self._say.chapter("A stopped agent says no, and how to go on")
        self._ok(ask.Steer(id=0, agent=AGENT, verb="stop"))
        answer = self._host.ask(ask.Prompt(id=0, agent=AGENT, text="Anyone there?"))
        refusal = answer.refusal
        if refusal is None:
            raise StoryBrokenError("a stopped agent took a message")
        self._say.check(refusal.code == "agent_stopped", f"refused: {refusal.message}")
        self._say.check(bool(refusal.hint), f"hint: {refusal.hint} ({refusal.resume_path})")
        self._ok(ask.Steer(id=0, agent=AGENT, verb="resume"))
        self._say.check(True, "resumed by the operator")

    def killed_in_mid_turn(self) -> str:
        """Kill the process while its model is thinking; returns the turn that was cut off."""
        self._say.chapter("The process is killed in the middle of a turn")
        turn = self._turn_of(self._prompt("Draft the announcement."))
        self._event("tool_executed", turn_id=turn)
        self._say.check(True, f"turn {turn} has made its tool call; now the model thinks")
        open_turns = self._host.status().open_turns
        self._say.check(open_turns == (AGENT,), "the turn is open")
        self._cursor = _newest_event_seq(self._host)
        pid = self._host.pid
        self._host.kill()
        code = self._host.process.returncode
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
        status = self._host.wait_idle(wait_s=STEP_S_MAX)
        self._say.check(status.is_idle(horizon_ms=0), "nothing is left to do")
        follow_ups = self._brief_texts().count("Set for nine.")
        self._say.check(follow_ups == 1, "the tool call before the kill had its effect once")
        self._say.check(status.rescue_count == 0, "and nobody had to be reminded of anything")

    def everything_holds(self) -> None:
        """Look at the database from outside."""
        self._say.chapter("Looking at the database from outside")
        code = self._host.terminate()
        self._say.check(code == 0, f"SIGTERM ends the host in good order (exit {code})")
        check_home(self._home, self._say)

    def _prompt(self, text: str) -> str:
        began = time.monotonic()
        message = str(self._ok(ask.Prompt(id=0, agent=AGENT, text=text))["message_id"])
        took_ms = (time.monotonic() - began) * 1_000
        self._say.tell(f"“{text}”")
        self._say.check(True, f"{message} is on disk after {took_ms:.0f} ms")
        return message

    def _ok(self, command: ask.Command) -> dict[str, JsonValue]:
        answer = self._host.ask(command)
        if not answer.ok:
            raise StoryBrokenError(f"{command} was refused: {answer.refusal}")
        return answer.result if isinstance(answer.result, dict) else {}

    def _turn_of(self, message: str) -> str:
        return str(self._event("turn_started", message_id=message)["turn_id"])

    def _say_brief(self, turn: str, text: str) -> None:
        self._event("turn_terminal", turn_id=turn)
        texts = self._brief_texts(turn)
        self._say.check(texts == [text], f"brief of {turn}: “{' / '.join(texts)}”")

    def _brief_texts(self, turn: str | None = None) -> list[str]:
        briefs = self._host.ask(ask.Briefs(id=0, agent=AGENT)).result
        return [
            str(brief["text"])
            for brief in (briefs if isinstance(briefs, list) else [])
            if isinstance(brief, dict) and turn in (None, brief.get("turn_id"))
        ]

    def _event(self, kind: str, **fields: JsonValue) -> dict[str, JsonValue]:
        """Wait for an event of this kind with these fields."""
        wanted = {"kind": kind, **fields}
        note = self._host.wait_note(_event_matcher(wanted), wait_s=STEP_S_MAX)
        return _event_of(note)


def _newest_event_seq(host: HostClient) -> int:
    data = [note.data for note in host.notes() if note.note == "event"]
    return max(int(str(d["event_seq"])) for d in data if isinstance(d, dict))


def _event_of(note: ask.Note) -> dict[str, JsonValue]:
    event = note.data.get("event") if isinstance(note.data, dict) else None
    return event if isinstance(event, dict) else {}


def _event_matcher(wanted: dict[str, JsonValue]) -> Callable[[ask.Note], bool]:
    def fits(note: ask.Note) -> bool:
        return note.note == "event" and wanted.items() <= _flat(_event_of(note)).items()

    return fits


def _flat(event: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The fields of an event that can be compared at a glance."""
    return {name: value for name, value in event.items() if isinstance(value, str | int)}
