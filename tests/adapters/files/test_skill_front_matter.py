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
    "an empty line first": ("\n\n" + PLAIN, "Fills in PDF forms."),
    "a note of a generator first": (
        "<!-- generated: do not edit -->\n\n<!--\n---\nfrom: forms\n-->\n" + PLAIN,
        "Fills in PDF forms.",
    ),
    "dots for an end": (PLAIN.replace("\n---\n", "\n...\n"), "Fills in PDF forms."),
    "old line ends": (PLAIN.replace("\n", "\r"), "Fills in PDF forms."),
    "a separator of lines inside": (
        "---\nname: pdf-forms\ndescription: one\u2028two\n---\n",
        "one two",
    ),
    "an alias": ("---\nx: &a d\nname: pdf-forms\ndescription: *a\n---\n", "d"),
    "a rule in the body": (PLAIN + "\n---\nname: other\n---\n", "Fills in PDF forms."),
}


@pytest.mark.requirement("skills:front-matter")
@pytest.mark.parametrize(("text", "description"), GOOD.values(), ids=GOOD.keys())
def test_files_of_the_public_form_load(text: str, description: str) -> None:
    read = read_front_matter(text.encode())
    assert (read.name, read.description) == ("pdf-forms", description)


@pytest.mark.requirement("skills:front-matter")
@pytest.mark.parametrize("body", [b"caf\xe9\n", b"\xff" * 70_000])
def test_a_body_that_is_not_utf8_is_nobodys_business(body: bytes) -> None:
    assert read_front_matter(PLAIN.encode() + body).description == "Fills in PDF forms."


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no front matter.*begin it with a line ---"),
    "only a heading": (b"# Title\n---\nname: x\n---\n", "no front matter.*begin it with"),
    "no end": (b"---\nname: x\ndescription: d\n", "no end.*add one"),
    "a comment without an end": (b"<!-- x\n---\ndescription: d\n---\n", "no front matter"),
    "too long": (b"---\nx: " + b"y" * 1_000_000 + b"\n---\n", "more than"),
    "no description": (b"---\nname: x\n---\n", "no description.*add a line description:"),
    "an empty one": (b"---\nname: x\ndescription: '  '\n---\n", "no description"),
    "nothing after it": (b"---\nname: x\ndescription:\n---\n", "no description"),
    "an empty block": (b"---\nname: x\ndescription: |\n---\n", "no description"),
    "null": (b"---\nname: x\ndescription: null\n---\n", "no description"),
    "a list of them": (b"---\nname: x\ndescription: [a]\n---\n", "no description"),
    "fields of its own": (b"---\ndescription: {short: s}\n---\n", "no description"),
    "an alias of a list": (b"---\nx: &a [b]\ndescription: *a\n---\n", "no description"),
    "not UTF-8": (b"---\nname: x\ndescription: caf\xe9\n---\n", "not UTF-8 text; save it"),
    "UTF-16": ("\ufeff---\nname: x\n---\n".encode("utf-16"), "not UTF-8 text"),
    "a tag": (b"---\ndescription: !!python/object/apply:os.system [x]\n---\n", "no description"),
    "a list": (b"---\n- a\n- b\n---\n", "a list, not fields.*write each as"),
    "a text": (b"---\nJust words\n---\n", "a text, not fields"),
    "nothing": (b"---\n---\n", "no description"),
    "not YAML": (b"---\nwhat: [x\n---\n", r"not YAML fields: .*in its line \d.*in quotes"),
}


@pytest.mark.requirement("skills:front-matter", "skills:problems-are-told")
@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_read_says_why_and_what_to_do(content: bytes, said: str) -> None:
    with pytest.raises(BadFrontMatterError, match=said):
        read_front_matter(content)


@pytest.mark.requirement("skills:front-matter", "skills:problems-are-told")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "no name"),
        ("name:", "no name"),
        ("name: ~", "no name"),
        (f"name: {'x' * 65}", "at most 64"),
        ('name: "a\\nb"', "a line"),
    ],
)
def test_without_a_usable_name_its_folder_names_it(line: str, said: str) -> None:
    read = read_front_matter(f"---\n{line}\ndescription: d\n---\n".encode())
    assert (read.name, read.description) == (None, "d")
    assert said in read.remarks[0]


@pytest.mark.parametrize(
    "name", ["2048", "yes", "2026-02-31", "Release Notes", "team:plan", "写作"]
)
def test_a_name_is_text_whatever_it_looks_like(name: str) -> None:
    read = read_front_matter(f"---\nname: {name}\ndescription: d\n---\n".encode())
    assert (read.name, read.remarks) == (name, ())


def test_a_long_description_is_cut() -> None:
    read = read_front_matter(b"---\nname: n\ndescription: " + b"x" * 3_000 + b"\n---\n")
    assert len(read.description) == 1_024
    assert "first 1024 characters" in read.remarks[0]
