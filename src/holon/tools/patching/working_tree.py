"""The files of a patch while it is being planned.

Owns:  what each path holds so far: as it was read, as entries have changed it, and as it will be.
Rule 1: a file is decoded once and encoded once, however many entries touch it.
"""

from collections.abc import Mapping

import msgspec

from holon.ports.files import FileChange, StoredFile
from holon.tools.patching.text_file import TextFile, decode_text, encode_text


class WorkingTree:
    """Paths and what they hold."""

    def __init__(self, files: Mapping[str, StoredFile | None], *, literal_mark: bool) -> None:
        self._before = files
        self._now: dict[str, StoredFile | None] = dict(files)
        self._texts: dict[str, TextFile] = {}
        self._origins: dict[str, str] = {}
        self._touched: dict[str, None] = {}
        self._literal_mark = literal_mark

    def holds(self, path: str) -> bool:
        """Whether there is a file."""
        return self._now.get(path) is not None

    def is_empty(self, path: str) -> bool:
        """Whether there is a file without content."""
        text, stored = self._texts.get(path), self._now.get(path)
        return not text.lines if text is not None else stored is not None and not stored.content

    def was_there(self, path: str) -> bool:
        """Whether the file existed before the patch."""
        return self._before.get(path) is not None

    def text(self, path: str) -> tuple[TextFile, bool]:
        """Return a file as lines, and whether it is looked at for the first time."""
        known = self._texts.get(path)
        if known is not None:
            return known, False
        stored = self._now[path]
        content = b"" if stored is None else stored.content
        text = decode_text(content, path=path, literal_mark=self._literal_mark)
        self._texts[path] = text
        return text, True

    def write(self, path: str, text: TextFile, *, mode: int) -> None:
        """Let a path hold these lines."""
        self._touched[path] = None
        self._texts[path] = text
        self._now[path] = StoredFile(content=b"", mode=mode)

    def mode_of(self, path: str) -> int:
        """Return the mode of a file that is there."""
        stored = self._now[path]
        return 0 if stored is None else stored.mode

    def set_mode(self, path: str, mode: int) -> None:
        """Change a file's mode."""
        self._touched[path] = None
        stored = self._now[path]
        if stored is not None:
            self._now[path] = msgspec.structs.replace(stored, mode=mode)

    def remove(self, path: str) -> None:
        """Let a path hold nothing."""
        self._touched[path] = None
        self._now[path] = None
        self._texts.pop(path, None)
        self._origins.pop(path, None)

    def move(self, path: str, target: str) -> None:
        """Let another path hold what this one holds."""
        stored, text = self._now[path], self._texts.get(path)
        origin = self._origins.get(path, path)
        self.remove(path)
        self._touched[target] = None
        self._now[target] = stored
        if text is not None:
            self._texts[target] = text
        if self.was_there(origin):
            self._origins[target] = origin

    def changes(self) -> list[FileChange]:
        """Return every path that holds something else than before."""
        changes = list[FileChange]()
        for path in self._touched:
            stored, text = self._now[path], self._texts.get(path)
            if stored is not None and text is not None:
                content = encode_text(text, text.lines, path=path)
                stored = StoredFile(content=content, mode=stored.mode)
            if stored != self._before.get(path):
                changes.append(FileChange(path=path, after=stored, before=self._before.get(path)))
        return changes

    def origin_of(self, path: str) -> str | None:
        """Return where a file came from when it was moved."""
        origin = self._origins.get(path)
        return None if origin == path or self._now.get(path) is None else origin
