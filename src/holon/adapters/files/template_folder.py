"""One template: a directory with an AGENTS.md and, perhaps, a skills.json.

Owns:  reading it, bounded and whole, or refusing it.
Rule 1: a template is refused rather than half understood.
Rule 2: the directory's name is the template's id; nothing else in it is read.
Rule 3: the user's own templates may be links to anywhere. In any other directory a link that leads
        out is refused: a repository must not choose what of this machine an agent is told.
"""

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Final

from holon.adapters.files.skill_install import name_of
from holon.adapters.system.private_file import FileUnusableError, read_bounded
from holon.decide.skill_refs import read_manifest
from holon.model.limits import (
    SUMMARY_CHARS_MAX,
    TEMPLATE_MANIFEST_BYTES_MAX,
    TEMPLATE_TEXT_BYTES_MAX,
)
from holon.model.record import Record
from holon.model.skill_ref import BadSkillRefError, SkillRef
from holon.model.template import BadTemplateError

AGENTS_FILE: Final = "AGENTS.md"
MANIFEST_FILE: Final = "skills.json"
_SHAPE: Final = (
    "a template is a directory with a text file AGENTS.md and, if need be, a skills.json"
)


class TemplateContent(Record, frozen=True, kw_only=True):
    """What a template gives to a new agent."""

    agents_md: str
    agents_md_sha256: str
    skill_refs: tuple[SkillRef, ...] = ()
    skills_json_sha256: str | None = None

    @property
    def summary(self) -> str:
        """Its first paragraph, or its title where there is none."""
        return summary_of(self.agents_md)


def read_foreign_template(folder: Path) -> TemplateContent:
    """Return what a template directory holds that is not among the user's own."""
    root = os.path.realpath(folder).rstrip("/")
    for name in (AGENTS_FILE, MANIFEST_FILE):
        path = folder / name
        if path.is_symlink() and not os.path.realpath(path).startswith(f"{root}/"):
            raise BadTemplateError(
                f"{path} is a link that leads out of {folder}", hint="put a copy in its place"
            )
    return read_template(folder)


def read_template(folder: Path) -> TemplateContent:
    """Return what a template directory holds, or raise BadTemplateError."""
    if folder.is_symlink() and not folder.exists():
        raise BadTemplateError(
            f"{folder} is a link that leads nowhere", hint=f"holon template remove {folder.name}"
        )
    if not folder.is_dir():
        raise BadTemplateError(f"there is no template directory {folder}", hint=_SHAPE)
    body = _content(folder / AGENTS_FILE, bytes_max=TEMPLATE_TEXT_BYTES_MAX)
    if body is None:
        raise BadTemplateError(f"{folder} has no {AGENTS_FILE}", hint=_SHAPE)
    text = _text(folder / AGENTS_FILE, body)
    if not text.strip():
        raise BadTemplateError(f"{folder / AGENTS_FILE} is empty", hint=_SHAPE)
    manifest = _content(folder / MANIFEST_FILE, bytes_max=TEMPLATE_MANIFEST_BYTES_MAX)
    return TemplateContent(
        agents_md=text,
        agents_md_sha256=hashlib.sha256(body).hexdigest(),
        skill_refs=() if manifest is None else _refs(folder / MANIFEST_FILE, manifest),
        skills_json_sha256=None if manifest is None else hashlib.sha256(manifest).hexdigest(),
    )


def summary_of(text: str) -> str:
    """Return a line about a template: the first that is not a heading, else the heading."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    prose = [line for line in lines if not line.startswith(("#", "<!--", "---"))]
    first = prose[0] if prose else (lines[0].lstrip("# ") if lines else "")
    return _whole_words(first, chars_max=SUMMARY_CHARS_MAX)


def _whole_words(line: str, *, chars_max: int) -> str:
    """Return a line cut behind a word, with a sign that there was more."""
    if len(line) <= chars_max:
        return line
    head = line[:chars_max]
    words = head.rpartition(" ")[0].rstrip(" ,;:")
    return f"{words or head[:-1]}…"


def _content(path: Path, *, bytes_max: int) -> bytes | None:
    if path.is_dir():
        raise BadTemplateError(f"{path} is a directory and not a file", hint=_SHAPE)
    try:
        found = read_bounded(path, bytes_max=bytes_max)
    except FileUnusableError as error:
        raise BadTemplateError(error.message, hint=error.hint) from error
    return None if found is None else found.content


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadTemplateError(f"{path} is not UTF-8 text") from None


def _refs(path: Path, content: bytes) -> tuple[SkillRef, ...]:
    try:
        refs = read_manifest(json.loads(content))
        names = Counter(name_of(ref) for ref in refs)
    except (ValueError, RecursionError):
        raise BadTemplateError(f"{path} is not JSON") from None
    except BadSkillRefError as error:
        raise BadTemplateError(f"{path}: {error.message}", hint=error.hint) from error
    for name, count in names.items():
        if count > 1:
            raise BadTemplateError(
                f"{path}: {count} of its skills would be named {name}",
                hint="name each skill once; two of one name cannot stand beside each other",
            )
    return refs
