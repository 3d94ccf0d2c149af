"""The prose of the prompt.

Owns:  reading prompt/texts/*.md; the prose never lives in Python strings.
"""

from functools import cache
from importlib import resources


@cache
def prompt_text(name: str) -> str:
    """Return one text of the prompt."""
    text = resources.files("holon.prompt").joinpath("texts", f"{name}.md")
    return text.read_text("utf-8").strip()
