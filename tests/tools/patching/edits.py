"""Random files, random edits, real diffs, and the damage models do to them.

Owns:  what the property tests draw from. Two kinds of files: `plain` ones, whose lines are mostly
       distinct as in real sources, and `odd` ones, made of few lines that look like patch syntax.
"""

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

from holon.ports.workspaces import StoredFile
from holon.tools.workspaces.patching.parse import parse_patch
from holon.tools.workspaces.patching.plan import paths_of, plan_patch

Tree = dict[str, StoredFile]

ODD_LINES: Final = (
    "alpha", "  beta", "", "", "}", "-- sql", "++ inc", "--- a/x", "+++ b/y", "@@ odd", "+", "-",
    "\\ No newline", "*** End Patch", "tab\t", "é", "    return x", " one space", "```", "EOF",
)  # fmt: skip
NAMES: Final = ("a.txt", "b/c.py", "b/with space.txt", "ünï/çödé.md", 'b/tab\tq"uote.txt', "a b/x")


def odd_line(random: Random) -> str:
    """A line that looks like something else, and may come twice."""
    return random.choice(ODD_LINES) + (str(random.randrange(100)) if random.random() < 0.5 else "")


def plain_line(random: Random) -> str:
    """A line as sources have it: indented, mostly distinct, sometimes blank or a brace."""
    if random.random() < 0.15:
        return random.choice(("", "", "}", "    return result", "- item", "* note"))
    indent = " " * random.choice((0, 0, 4, 4, 8))
    return f"{indent}{random.choice(('set', 'let', 'call', 'if'))} name_{random.randrange(10**6)}"


def text(random: Random, line: Callable[[Random], str], count: int, *, eol: str = "\n") -> str:
    """A file's text."""
    made = "".join(line(random) + eol for _ in range(count))
    return made.removesuffix(eol) if random.random() < 0.2 else made


def edited(random: Random, before: str, line: Callable[[Random], str], *, eol: str = "\n") -> str:
    """The text with a few lines inserted, removed and replaced."""
    unended = bool(before) and not before.endswith(eol)
    lines = before.removesuffix(eol).split(eol) if before else []
    for _ in range(random.randrange(1, 4)):
        at, few = random.randrange(len(lines) + 1), random.randrange(1, 4)
        match random.randrange(3):
            case 0:
                lines[at:at] = [line(random) for _ in range(few)]
            case 1:
                del lines[at : at + few]
            case _:
                lines[at : at + few] = [line(random) for _ in range(few)]
    after = "".join(each + eol for each in lines)
    return after.removesuffix(eol) if unended and lines and lines[-1] else after


def gnu_diff(folder: Path, before: str, after: str) -> str:
    """What `diff -u` says of two texts."""
    for name, content in (("old", before), ("new", after)):
        (folder / name).write_bytes(content.encode())
    made = subprocess.run(
        ["diff", "-u", "--label", "a/f.txt", "--label", "b/f.txt", "old", "new"],
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    return made.stdout.decode()


def git_diff(repo: Path, before: Tree, after: Tree) -> str:
    """What `git diff` says of two trees; renames are found."""
    put(repo, before, gone=())
    git(repo, "add", "-A")
    tree = git(repo, "write-tree").strip()
    put(repo, after, gone=before)
    git(repo, "add", "-A")
    patch = git(repo, "diff", "--cached", "-M", tree)
    put(repo, {}, gone=after)
    return patch


def git(repo: Path, *arguments: str) -> str:
    """Run git, with nobody's settings."""
    plain = ("-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.safecrlf=false")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(repo), "GIT_CONFIG_NOSYSTEM": "1"}
    made = subprocess.run(
        ["git", *plain, *arguments], cwd=repo, capture_output=True, check=True, env=environment
    )
    return made.stdout.decode()


def put(folder: Path, tree: Tree, *, gone: Mapping[str, StoredFile] | tuple[()]) -> None:
    """Let a folder hold a tree."""
    for name in gone:
        (folder / name).unlink()
    for name, file in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)


def applied(tree: Tree, patch_text: str) -> Tree:
    """The tree after a patch; raises PatchRefusedError."""
    patch = parse_patch(patch_text)
    plan = plan_patch(patch, {path: tree.get(path) for path in paths_of(patch)})
    after = dict(tree)
    for change in plan.changes:
        if change.after is None:
            del after[change.path]
        else:
            after[change.path] = change.after
    return after


def plain_file(content: str, mode: int = 0o644) -> StoredFile:
    """A file that holds a text."""
    return StoredFile(content=content.encode(), mode=mode)


def begin(*lines: str) -> str:
    """A patch of the second form."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


_HEADER: Final = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")


def _each_header(patch: str, change: Callable[[re.Match[str]], str]) -> str:
    return re.sub(rf"^{_HEADER.pattern}.*$", change, patch, flags=re.MULTILINE)


def bare_headers(patch: str, random: Random) -> str:
    """Hunk headers without numbers."""
    bare = random.choice(("@@", "@@ @@", "@@ ... @@"))
    return _each_header(patch, lambda match: bare)


def wrong_counts(patch: str, random: Random) -> str:
    """Line counts that are off; the starts are right."""

    def change(match: re.Match[str]) -> str:
        numbers = [int(n) for n in re.findall(r"\d+", _HEADER.match(match[0])[0])]  # type: ignore[index]
        old, new = numbers[0], numbers[2] if len(numbers) > 3 else numbers[-1]
        return f"@@ -{old},{random.randrange(1, 30)} +{new},{random.randrange(1, 30)} @@"

    return _each_header(patch, change)


def wrong_places(patch: str, random: Random) -> str:
    """Starts that are off."""
    return _each_header(patch, lambda _: f"@@ -{random.randrange(1, 9)},9 +1,9 @@")


def lost_space(patch: str, random: Random) -> str:
    """Context lines without the space that is their sign; some hunks, or all."""
    some = random.random() < 0.5
    return "\n".join(
        line[1:] if line.startswith(" ") and (not some or random.random() < 0.5) else line
        for line in patch.split("\n")
    )


def lost_trailing_blanks(patch: str, random: Random) -> str:
    """An editor cut the blanks at the ends of context lines."""
    del random
    return "\n".join(
        line.rstrip(" \t") if line.startswith((" ", "-")) and line.strip("- ") else line.rstrip(" ")
        for line in patch.split("\n")
    )


def no_last_feed(patch: str, random: Random) -> str:
    """The patch stops without a line feed, or goes on with blank lines."""
    return patch.removesuffix("\n") if random.random() < 0.5 else patch + "\n\n"


def unmarked_end(patch: str, random: Random) -> str:
    """Nothing is said of the missing last line feed."""
    del random
    return patch.replace("\\ No newline at end of file\n", "")


def all_crlf(patch: str, random: Random) -> str:
    """The whole patch was converted."""
    del random
    return patch.replace("\r\n", "\n").replace("\n", "\r\n")


def all_lf(patch: str, random: Random) -> str:
    """The carriage returns of a CRLF file were lost."""
    del random
    return patch.replace("\r\n", "\n")


def wrapped(patch: str, random: Random) -> str:
    """A fence or a here-document around it."""
    patch = patch.removesuffix("\n") + "\n"
    return random.choice(
        (
            f"```diff\n{patch}```\n",
            f"Here is the patch:\n\n```\n{patch}\n```",
            f"apply_patch <<'EOF'\n{patch}EOF\n",
            f"```bash\ngit apply <<EOF\n{patch}EOF\n```\n",
        )
    )


DAMAGES: Final[Mapping[str, Callable[[str, Random], str]]] = {
    damage.__name__: damage
    for damage in (
        bare_headers, wrong_counts, wrong_places, lost_space, lost_trailing_blanks,
        no_last_feed, unmarked_end, all_crlf, all_lf, wrapped,
    )
}  # fmt: skip


def dull_line(random: Random) -> str:
    """One of very few lines, so that most hunks have several places."""
    return random.choice(("x", "x", "y", "z", "", "    x"))
