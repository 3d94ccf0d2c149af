"""`holon`, with a scan that never ends on some words: what a scan looks like that is not linear.

Owns:  `python -m tests.hostile.hanging_service`. Each time the scan meets the words it makes a file
       `hung.<pid>` beside the home, and then keeps the processor for good.
"""

import os
from pathlib import Path

from holon.__main__ import start
from holon.decide.text import fencing

WORDS = "never read this"
_honest = fencing.visible


def _visible(text: str) -> str:
    if WORDS in text:
        (Path(os.environ["HOLON_HOME"]).parent / f"hung.{os.getpid()}").touch()
        while True:
            pass
    return _honest(text)


if __name__ == "__main__":
    fencing.visible = _visible
    start()
