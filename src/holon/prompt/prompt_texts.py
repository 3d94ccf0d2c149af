"""The prose of the prompt.

Owns:  reading prompt/texts/*.md; the prose never lives in Python strings.
"""

import pkgutil
from functools import cache


@cache
def prompt_text(name: str) -> str:
    """Return one text of the prompt."""
    text = pkgutil.get_data("holon.prompt", f"texts/{name}.md")
    assert text is not None, "the texts are part of the package"
    return text.decode("utf-8").strip()
