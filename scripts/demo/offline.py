"""The last chapter: a real model answers, in the process and offline.

Owns:  the story of a machine on which nothing is configured.
"""

from pathlib import Path

from holon.adapters.providers.resolver import local_is_installed
from scripts.demo.command_line import run_once
from scripts.demo.narrator import Narrator


def tell_of_a_real_model(folder: Path, say: Narrator) -> None:
    """The command line, nothing configured, no network: a real model in the process."""
    say.chapter("A real model answers, offline and with nothing configured")
    if not local_is_installed():
        say.tell("skipped: the packages of `holon-runtime[local]` are not installed")
        return
    told = run_once(folder, say, "What is the capital of France?")
    say.check("Paris" in str(told["final_text"]), f"it says: {told['final_text']}")
    say.tell("so small a model is given no commands, unless they are allowed for the run")
    told = run_once(folder, say, "Run the command: echo holon-42", "--allow-trial-tools")
    say.check(told["tool_calls"] == 1, "asked to run a command, it calls the tool for that")
    say.check("holon-42" in str(told["final_text"]), f"and reports: {told['final_text']}")
