"""Chapters on a mind: an agent that is somebody, can do something, and remembers.

Owns:  the story of a reviewer. It is made from a template, takes up a skill, writes down what it
       learns in two languages, finds it again, and shows what it is told before every answer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from holon.model.values import JsonValue
from scripts.demo.command_line import check_home, home_in
from scripts.demo.daemon import Daemon
from scripts.demo.narrator import Narrator

AGENT: Final = "critic"
SKILL: Final = "github-review"


def tell_of_a_mind(folder: Path, say: Narrator) -> None:
    """Tell the chapters; raises when a part of them does not hold."""
    daemon = Daemon(folder, say, script="mind")
    story = _Mind(daemon, say)
    try:
        story.is_born_from_a_template()
        story.takes_up_a_skill()
        story.remembers()
        story.shows_what_it_is_told()
    finally:
        daemon.end()
    check_home(home_in(folder), say)


class _Mind:
    """The story of one reviewer."""

    def __init__(self, daemon: Daemon, say: Narrator) -> None:
        self._daemon = daemon
        self._say = say

    def is_born_from_a_template(self) -> None:
        """A template gives an agent its first guidance and skills."""
        self._say.chapter("An agent is made from a template")
        self._daemon.start()
        self._daemon.told("agent", "create", AGENT, "--template", "holon-reviewer")
        guidance = home_in(self._daemon.folder) / "agents" / AGENT / "AGENTS.md"
        self._say.check(
            guidance.read_text(encoding="utf-8").startswith("# Reviewer"),
            "it has an AGENTS.md of its own, and it is a reviewer",
        )
        known = self._skill()
        self._say.check(known is not None, f"and it may learn {SKILL}")
        self._say.check(not (known or {}).get("active"), "which it does not use yet")

    def takes_up_a_skill(self) -> None:
        """Reading a skill's entrypoint activates it."""
        self._say.chapter("It takes up a skill")
        answer = self._asked("Review the last change.")
        self._say.check("ready" in answer, f"the agent: “{answer.strip()}”")
        seen = self._daemon.holon("events", "tail", "--agent", AGENT, "--json")
        self._say.check("skill_activated" in seen, f"by reading it, {SKILL} became active")

    def remembers(self) -> None:
        """What was written down is found again, in either language."""
        self._say.chapter("It remembers, in Chinese and in English")
        self._asked("Remember how I work: releases on Friday afternoons, notes in plain words.")
        for query in ("星期五发布", "plain words"):
            self._say.tell(f"holon memory search “{query}”")
            hits = _rows(
                self._daemon.answer("memory", "search", query, "--agent", AGENT), "results"
            )
            noted = [hit for hit in hits if hit["kind"] == "agent_memory"]
            self._say.check(
                len(noted) == 1 and str(noted[0]["source_path"]).endswith("memory/operator.md"),
                f"found in its own notes: {str(noted[0]['snippet']).splitlines()[-1]}",
            )
        answer = self._asked("When do I release?")
        self._say.check("Friday" in answer, f"the agent: “{answer.strip()}”")

    def shows_what_it_is_told(self) -> None:
        """Nothing the model reads is hidden from the operator."""
        self._say.chapter("What the model is told is no secret")
        self._say.tell("holon debug prompt “Anything else?”")
        told = self._daemon.answer("debug", "prompt", "Anything else?", "--agent", AGENT)
        sections = _rows(told, "sections")
        sent = [each for each in sections if each.get("outcome") != "omitted"]
        names = [str(each["name"]) for each in sent]
        self._say.tell(f"{len(sent)} sections: {', '.join(names[:4])}, …, {names[-1]}")
        text = "\n".join(str(each.get("text", "")) for each in sent)
        self._say.check("You review changes others made" in text, "its AGENTS.md is in it")
        self._say.check(
            SKILL in text and "Read it twice" not in text, "of a skill only the name and its use"
        )
        self._say.check(names[-1] == "current_input", "and the question comes last")

    def _asked(self, text: str) -> str:
        return self._daemon.told("prompt", "--agent", AGENT, "--wait", text)

    def _skill(self) -> dict[str, JsonValue] | None:
        listed = _rows(self._daemon.answer("skills", "list", "--agent", AGENT), "skills")
        return next((each for each in listed if each.get("name") == SKILL), None)


def _rows(answer: dict[str, JsonValue], part: str) -> Sequence[dict[str, JsonValue]]:
    found = answer.get(part)
    assert isinstance(found, list), f"{part} is a list"
    return [each for each in found if isinstance(each, dict)]
