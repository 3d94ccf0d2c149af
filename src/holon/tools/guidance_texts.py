"""What the model is told about each tool.

Owns:  reading tools/guidance/*.md; the prose never lives in Python strings.
"""

from importlib import resources


def guidance_for(name: str) -> str:
    """Return the guidance text of one tool."""
    text = resources.files("holon.tools").joinpath("guidance", f"{name}.md")
    return text.read_text("utf-8").strip()
