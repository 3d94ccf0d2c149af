"""The templates and skills that ship with Holon.

Owns:  finding them in the package, and installing the templates among the user's own.
Rule 1: a missing template is installed. An existing one is updated only while each of its files is
        what Holon last installed; anything else belongs to the user.
Rule 2: the hashes of what Holon installed are recorded beside it.
Rule 3: installing never blocks a start: a failure is logged and skipped.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Final

from holon.adapters.files.new_tree import copy_tree, place, scratch_in, sweep_scratch
from holon.adapters.system.private_file import (
    FileUnusableError,
    folder_lock,
    read_bounded,
    replace_file,
)
from holon.model.errors import HolonError
from holon.model.limits import TEMPLATE_MANIFEST_BYTES_MAX, TEMPLATE_TEXT_BYTES_MAX
from holon.model.values import JsonValue

RECORD_FILE: Final = ".holon-builtin-template.json"
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_TEMPLATES: Final = _PACKAGE / "templates"
_SKILLS: Final = _PACKAGE / "skills"


def builtin_template(template_id: str) -> Path | None:
    """Return where a template that comes with Holon is, if there is such a one."""
    return _TEMPLATES / template_id if template_id in builtin_template_ids() else None


def builtin_template_ids() -> tuple[str, ...]:
    """Name the templates that come with Holon."""
    return tuple(sorted(each.name for each in _TEMPLATES.iterdir() if each.is_dir()))


def builtin_skill(name: str) -> Path | None:
    """Return where a skill that comes with Holon is, if there is such a one."""
    return _SKILLS / name if name in builtin_skill_names() else None


def builtin_skill_names() -> tuple[str, ...]:
    """Name the skills that come with Holon."""
    return tuple(sorted(each.name for each in _SKILLS.iterdir() if each.is_dir()))


def home_guidance() -> str:
    """Return the guidance about its home that every agent gets."""
    return (_TEMPLATES / "agent-home.md").read_text(encoding="utf-8").strip()


def seed_templates(root: Path) -> tuple[str, ...]:
    """Put Holon's templates among the user's; return what could not be done, in words."""
    problems: list[str] = []
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with folder_lock(root):
            sweep_scratch(root)
            for template_id in builtin_template_ids():
                _seed(_TEMPLATES / template_id, root / template_id, problems)
    except (OSError, HolonError) as error:
        problems.append(f"the templates of Holon cannot be put into {root}: {error}")
    return tuple(problems)


def is_as_seeded(folder: Path) -> bool | None:
    """Whether a template is as Holon put it there; nothing where Holon did not."""
    try:
        recorded = _recorded(folder)
        return None if recorded is None else _hashes(folder) == recorded
    except (OSError, HolonError):
        return False


def _seed(source: Path, target: Path, problems: list[str]) -> None:
    try:
        packaged = _hashes(source)
        if not os.path.lexists(target):
            _put(source, target, packaged)
        elif is_as_seeded(target) and _recorded(target) != packaged:
            with scratch_in(target.parent) as aside:
                target.rename(aside / target.name)
                _put(source, target, packaged)
    except (OSError, HolonError) as error:
        problems.append(f"the template {target.name} cannot be put into {target.parent}: {error}")


def _put(source: Path, target: Path, hashes: dict[str, str]) -> None:
    with scratch_in(target.parent) as scratch:
        copy_tree(source, scratch)
        record: JsonValue = {"template_id": target.name, "files": dict(hashes)}
        replace_file(scratch / RECORD_FILE, json.dumps(record, indent=2).encode() + b"\n")
        place(scratch, target)


def _hashes(folder: Path) -> dict[str, str]:
    """Return the hash of every file in a template but the record."""
    hashes: dict[str, str] = {}
    for name in sorted(os.listdir(folder)):
        if name == RECORD_FILE:
            continue
        content = read_bounded(folder / name, bytes_max=TEMPLATE_TEXT_BYTES_MAX)
        if content is not None:
            hashes[name] = hashlib.sha256(content.content).hexdigest()
    return hashes


def _recorded(folder: Path) -> dict[str, str] | None:
    file = read_bounded(folder / RECORD_FILE, bytes_max=TEMPLATE_MANIFEST_BYTES_MAX)
    if file is None:
        return None
    try:
        record = json.loads(file.content)
    except (ValueError, RecursionError):
        raise FileUnusableError(f"{folder / RECORD_FILE} is not JSON") from None
    files = record.get("files") if isinstance(record, dict) else None
    return files if isinstance(files, dict) else {}
