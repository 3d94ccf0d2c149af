"""From a text to a patch.

Owns:  telling the two forms apart. Both are taken wherever a patch is taken.
"""

from holon.tools.patching.begin_patch import is_begin_patch, read_begin_patch
from holon.tools.patching.document import Patch
from holon.tools.patching.hunk_reading import require_text
from holon.tools.patching.unified import read_unified
from holon.tools.patching.wrappers import patch_lines


def parse_patch(text: str) -> Patch:
    """Return what a patch wants, or raise PatchRefusedError."""
    lines = patch_lines(text)
    require_text(lines)
    return read_begin_patch(lines) if is_begin_patch(lines) else read_unified(lines)
