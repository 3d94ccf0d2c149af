"""What the model is told about each tool.

Owns:  reading tools/guidance/*.md; the prose never lives in Python strings.
"""

import pkgutil


def guidance_for(name: str) -> str:
    """Return the guidance text of one tool."""
    return guidance_file(f"{name}.md")


def guidance_file(name: str) -> str:
    """Return the text of one file of the guidance."""
    text = pkgutil.get_data("holon.tools", f"guidance/{name}")
    assert text is not None, "the guidance is part of the package"
    return text.decode("utf-8").strip()
