"""Template selectors: parsing the three forms that name a template.

Owns:  the distinction between a template id, an absolute path and a GitHub tree, and the refusal of
       everything else.
Rule 1: a bad selector is refused here, before any file is opened and any name is looked up.
Rule 2: an address is matched as it is written, character by character. It is never decoded,
        normalised or repaired, so it cannot mean one thing here and another to a server.
Rule 3: a ref is one segment. A branch with a slash in its name is reached by its commit id.
"""

import re
from typing import Final

from holon.model.agents import (
    BadTemplateError,
    GithubTree,
    NamedTemplate,
    TemplateFolder,
    TemplateSelector,
)
from holon.model.limits import TEMPLATE_ID_CHARS_MAX, WORKSPACE_PATH_CHARS_MAX
from holon.model.text_size import cut

TREE_FORM: Final = "https://github.com/<owner>/<repo>/tree/<ref>/<path>"
_FORMS: Final = f"give a template id, an absolute path, or {TREE_FORM}"
_PREFIX: Final = "https://github.com/"
_ADDRESS_CHARS_MAX: Final = 1_024
_QUOTED_CHARS_MAX: Final = 120
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_OWNER: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})", re.ASCII)
_REPO: Final = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]{0,99}", re.ASCII)
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,254}", re.ASCII)
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._@+][A-Za-z0-9._@+-]{0,254}", re.ASCII)


def parse_selector(text: str) -> TemplateSelector:
    """Return what a selector names, or raise BadTemplateError."""
    if not text:
        raise BadTemplateError("the template has no name", hint=_FORMS)
    if not text.isprintable():
        raise _refused(text, "it holds characters that cannot be seen")
    if "://" in text or text.lower().startswith(("http:", "https:", "github.com/")):
        return _tree(text)
    if text.startswith("/"):
        return _folder(text)
    return NamedTemplate(template_id=parse_template_id(text))


def parse_template_id(text: str) -> str:
    """Return a simple name, or raise BadTemplateError."""
    if len(text) > TEMPLATE_ID_CHARS_MAX:
        raise _refused(text, f"an id has at most {TEMPLATE_ID_CHARS_MAX} characters")
    if "/" in text or "\\" in text or text.startswith(("~", ".")):
        raise _refused(text, "it looks like a path that is not absolute")
    if _ID.fullmatch(text) is None:
        raise _refused(text, "an id has letters, digits, '-', '_' and '.' only")
    return text


def is_repository(owner: str, repo: str) -> bool:
    """Whether these can be the names of an owner and a repository."""
    return (
        _OWNER.fullmatch(owner) is not None
        and _REPO.fullmatch(repo) is not None
        and repo not in (".", "..")
    )


def is_simple_name(text: str) -> bool:
    """Whether a text can be the name of a template or skill directory."""
    return len(text) <= TEMPLATE_ID_CHARS_MAX and _ID.fullmatch(text) is not None


def _folder(text: str) -> TemplateFolder:
    if len(text) > WORKSPACE_PATH_CHARS_MAX:
        raise _refused(text, "the path is too long")
    if ".." in text.split("/"):
        raise _refused(text, "the path holds '..'")
    return TemplateFolder(path=text)


def _tree(text: str) -> GithubTree:
    if not text.startswith(_PREFIX):
        raise _refused(text, "only https://github.com/ is fetched from")
    if len(text) > _ADDRESS_CHARS_MAX:
        raise _refused(text, "the address is too long")
    owner, repo, *rest = [*text.removeprefix(_PREFIX).split("/"), ""]
    if not is_repository(owner, repo):
        raise _refused(text, "it names no repository")
    if rest[:1] != ["tree"]:
        raise _refused(text, "it does not name a directory of a repository at a ref")
    ref, path = (rest[1], rest[2:-1]) if len(rest) > 1 else ("", [])
    if _REF.fullmatch(ref) is None or ".." in ref:
        raise _refused(text, "its ref cannot be one")
    if not path or not all(_is_segment(segment) for segment in path):
        raise _refused(text, "the path after its ref cannot be one")
    return GithubTree(owner=owner, repo=repo, ref=ref, path="/".join(path))


def _is_segment(segment: str) -> bool:
    return _SEGMENT.fullmatch(segment) is not None and segment not in (".", "..")


def _refused(text: str, reason: str) -> BadTemplateError:
    quoted_text = cut(text, chars_max=_QUOTED_CHARS_MAX)
    return BadTemplateError(f"{quoted_text!r} selects no template: {reason}", hint=_FORMS)
