"""The directory layout of an agent's home.

Owns:  what is in a home from the first moment on, and the modes of it.
Rule 1: everything is the owner's alone: directories 0700, files 0600.
Rule 2: `complete_home` adds what is missing. A file that is there, whatever it is, stays as it is:
        it appears by being linked into place, which the system refuses where a name is taken.
Rule 3: AGENTS.md is the template's text and the guidance about the home, once.
"""

import json
import os
from pathlib import Path
from typing import Final

from holon.adapters.files.builtin_templates import home_guidance
from holon.adapters.system.private_file import sync_folder
from holon.model.json_value import JsonValue

AGENTS_FILE: Final = "AGENTS.md"
PROVENANCE_FILE: Final = ".holon/state/template-provenance.json"
SKILLS_FOLDER: Final = "skills"
_FOLDERS: Final = (
    "memory",
    "notes",
    "work",
    SKILLS_FOLDER,
    ".holon",
    ".holon/state",
    ".holon/ledger",
    ".holon/indexes",
)
_MEMORIES: Final = {
    "memory/self.md": "# Self\n\nWhat you have learned about yourself and your work.\n",
    "memory/operator.md": "# Operator\n\nWhat you know about the people you work for.\n",
}
_MARK: Final = "<!-- holon:agent-home -->"
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BARE: Final = "# Agent\n"


def agents_md_of(template: str | None) -> str:
    """Return the first AGENTS.md of an agent made from this text, or from none."""
    body = (template if template is not None else _BARE).rstrip()
    if _MARK in body:  # it was taken from another agent's home
        return f"{body}\n"
    return f"{body}\n\n{home_guidance()}\n"


def build_home(folder: Path, *, agents_md: str) -> None:
    """Make a home in a directory that is not there yet."""
    folder.mkdir(mode=0o700)
    complete_home(folder, agents_md=agents_md)


def complete_home(folder: Path, *, agents_md: str | None) -> None:
    """Add what a home lacks; raises OSError where something stands in the way."""
    for name in _FOLDERS:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    for name, text in _MEMORIES.items():
        add_file(folder / name, text.encode())
    if agents_md is not None:
        add_file(folder / AGENTS_FILE, agents_md.encode())
    sync_folder(folder)


def write_provenance(folder: Path, record: JsonValue) -> None:
    """Write down how a home came to be."""
    add_file(folder / PROVENANCE_FILE, json.dumps(record, indent=2).encode() + b"\n")


def add_file(path: Path, content: bytes) -> None:
    """Make a private file appear whole, unless the name is taken."""
    if os.path.lexists(path):
        return
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with os.fdopen(os.open(draft, _NEW_FILE, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink(missing_ok=True)
