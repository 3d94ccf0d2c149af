"""Reading what other people write at the head of a SKILL.md."""

import pytest

from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter

PLAIN = "---\nname: pdf-forms\ndescription: Fills in PDF forms.\n---\n\n# PDF\n"
GOOD: dict[str, tuple[str, str]] = {
    "plain": (PLAIN, "Fills in PDF forms."),
    "only a head": ("---\nname: pdf-forms\ndescription: d\n---", "d"),
    "double quotes": (
        '---\nname: "pdf-forms"\ndescription: "Use when: a \\"form\\" is seen"\n---\n',
        'Use when: a "form" is seen',
    ),
    "single quotes": ("---\nname: 'pdf-forms'\ndescription: 'it''s: here'\n---\n", "it's: here"),
    "folded": (
        "---\nname: pdf-forms\ndescription: >\n  Fills in\n  forms.\n\n  And more.\n---\n",
        "Fills in forms. And more.",
    ),
    "folded, stripped": ("---\nname: pdf-forms\ndescription: >-\n  One\n  two\n---\n", "One two"),
    "literal": ("---\nname: pdf-forms\ndescription: |\n  One\n  two\n---\n", "One two"),
    "continued": ("---\nname: pdf-forms\ndescription: One\n  two\n  three\n---\n", "One two three"),
    "everything": (
        "---\n# a comment\nname: pdf-forms\ndescription: d # another\nlicense: Apache-2.0\n"
        "allowed-tools: [Bash(git:*), Read]\ncompatibility: needs python\nmetadata:\n"
        "  author: acme\n  version: '1.0'\n  tags:\n    - a\n    - b\n---\n",
        "d",
    ),
    "tools as a line": (
        "---\nname: pdf-forms\ndescription: d\nallowed-tools: Bash Read Write\n---\n",
        "d",
    ),
    "another order": ("---\nversion: 2\ndescription: d\nname: pdf-forms\n---\n", "d"),
    "Windows": (PLAIN.replace("\n", "\r\n"), "Fills in PDF forms."),
    "a byte order mark": ("\ufeff" + PLAIN, "Fills in PDF forms."),
    "blanks after the fence": (PLAIN.replace("---\n", "---  \n"), "Fills in PDF forms."),
    "a colon nobody quoted": (
        "---\nname: pdf-forms\ndescription: Fills in forms. Use when: asked: to\n---\n",
        "Fills in forms. Use when: asked: to",
    ),
    "other scripts": ("---\nname: pdf-forms\ndescription: 填写表单 — ✓\n---\n", "填写表单 — ✓"),
    "a rule in the body": (PLAIN + "\n---\nname: other\n---\n", "Fills in PDF forms."),
}


@pytest.mark.requirement("skills:front-matter")
@pytest.mark.parametrize(("text", "description"), GOOD.values(), ids=GOOD.keys())
def test_files_of_the_public_form_load(text: str, description: str) -> None:
    read = read_front_matter(text.encode())
    assert (read.name, read.description) == ("pdf-forms", description)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
)
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no front matter"),
    "no head": (b"# Title\n---\nname: x\n---\n", "no front matter"),
    "no end": (b"---\nname: x\ndescription: d\n", "no end"),
    "too long": (b"---\nx: " + b"y" * 1_000_000 + b"\n---\n", "more than"),
    "no description": (b"---\nname: x\n---\n", "no description"),
    "an empty one": (b"---\nname: x\ndescription: '  '\n---\n", "no description"),
    "a list of them": (b"---\nname: x\ndescription: [a]\n---\n", "no description"),
    "a list": (b"---\n- a\n- b\n---\n", "not a list of fields"),
    "nothing": (b"---\n---\n", "not a list of fields"),
    "a number for a name": (b"---\nname: 7\ndescription: d\n---\n", "name"),
    "a long name": (b"---\nname: " + b"x" * 65 + b"\ndescription: d\n---\n", "name"),
    "a name of two lines": (b'---\nname: "a\\nb"\ndescription: d\n---\n', "name"),
    "aliases": (f"---\n{BOMB}description: d\n---\n".encode(), "alias"),
    "nested": (b"---\ndescription: d\nx: " + b"[" * 400 + b"]" * 400 + b"\n---\n", "deeply"),
    "not YAML": (b"---\nname: [x\n---\n", "not YAML"),
    "a tag": (b"---\ndescription: !!python/object/apply:os.system [x]\n---\n", "not YAML"),
}


@pytest.mark.requirement("skills:front-matter", "skills:problems-are-told")
@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_read_says_why(content: bytes, said: str) -> None:
    with pytest.raises(BadFrontMatterError, match=said):
        read_front_matter(content)


def test_without_a_name_its_folder_names_it() -> None:
    assert read_front_matter(b"---\ndescription: d\n---\n").name is None


def test_a_long_description_is_cut() -> None:
    read = read_front_matter(b"---\ndescription: " + b"x" * 3_000 + b"\n---\n")
    assert (len(read.description), read.description_cut) == (1_024, True)
