"""From a text to a patch.

Owns:  telling the two forms apart, and taking together what one text holds: several fenced patches,
       a series of mails. Both forms are taken wherever a patch is taken.
Rule 1: every patch in a text is read, or the text is refused: a part is never passed over.
"""

from holon.tools.patching.begin_patch import read_begin_patch
from holon.tools.patching.document import FileEntry, Note, Patch
from holon.tools.patching.hunk_reading import require_text
from holon.tools.patching.problem import SYNTAX, PatchRefusedError, require_files
from holon.tools.patching.unified import read_unified
from holon.tools.patching.wrappers import SECTIONS, Wrapping, patch_lines


def parse_patch(text: str) -> Patch:
    """Return what a patch wants, or raise PatchRefusedError."""
    lines = patch_lines(text)
    require_text(lines)
    wrapping = Wrapping(lines)
    entries, ignored, notes = list[FileEntry](), list[str](), list[Note]()
    start = wrapping.next_patch(0, follows=False)
    while start is not None:
        read = read_begin_patch if lines[start].startswith(SECTIONS) else read_unified
        part, end = read(lines, start, wrapping)
        entries.extend(part.entries)
        require_files(len(entries))
        ignored.extend(part.ignored_metadata)
        notes.extend(part.notes)
        start = wrapping.next_patch(end, follows=True)
    if not entries:
        raise PatchRefusedError(
            SYNTAX,
            "the patch names no file",
            hint="begin with `--- a/path` and `+++ b/path`, or with `*** Begin Patch`",
        )
    return Patch(entries=tuple(entries), ignored_metadata=tuple(ignored), notes=tuple(notes))
