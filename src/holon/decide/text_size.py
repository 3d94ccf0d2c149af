"""How large a text is once it is written down.

Owns:  counting the bytes of a text, which budgets do for every section of every prompt.
"""


def utf8_bytes(text: str) -> int:
    """Return how many bytes a text has in UTF-8; of plain ASCII without making a copy of it."""
    return len(text) if text.isascii() else len(text.encode())
