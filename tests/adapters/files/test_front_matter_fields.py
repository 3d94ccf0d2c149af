"""Text fields out of YAML as people write it, and as they do not."""

import pytest

from holon.adapters.files.skill_front_matter import BadYamlError, text_fields

WANTED = ("name", "description")
YAML: dict[str, tuple[str, str]] = {
    "plain": ("description: Draws maps.", "Draws maps."),
    "with a comment": ("description: Draws maps. # for now", "Draws maps."),
    "with angle brackets": (
        "description: Draws <map> for <b>all</b>",
        "Draws <map> for <b>all</b>",
    ),
    "with a colon that is none": ("description: See geo:maps, 12:30", "See geo:maps, 12:30"),
    "over several lines": ("description: Draws\n  maps\n  of towns", "Draws maps of towns"),
    "on the next line": ("description:\n  Draws maps", "Draws maps"),
    "double quotes": (r'description: "Draws \"maps\": \u00e9\tx"', 'Draws "maps": \xe9\tx'),
    "single quotes": ("description: 'it''s: a map'", "it's: a map"),
    "quotes over lines": ('description: "Draws\n  maps"', "Draws maps"),
    "folded": ("description: >\n  Draws\n  maps\n\n  Twice\n", "Draws maps\nTwice\n"),
    "folded, stripped": ("description: >-\n  Draws\n  maps\n\n", "Draws maps"),
    "folded, kept": ("description: >+\n  Draws\n\n", "Draws\n\n"),
    "literal": ("description: |\n  Draws:\n  - maps\n", "Draws:\n- maps\n"),
    "literal, stripped": ("description: |-\n  Draws\n  maps\n", "Draws\nmaps"),
    "literal, indented by a number": ("description: |2-\n    Draws\n   maps\n", "  Draws\n maps"),
    "a block with a comment": ("description: | # long\n  Draws\n", "Draws\n"),
    "with other fields": (
        "version: 1.2.0\nlicense: MIT\nallowed-tools: [Bash(git:*), Read]\ntags:\n- a\n- b: c\n"
        'metadata: {"kit": {"emoji": "x", "needs": ["jq"]}}\nempty:\ndescription: Draws maps\n'
        "metadata2:\n  description: not this\n  more:\n    description: nor this\n",
        "Draws maps",
    ),
    "a key that is a list": ("? [a, b]\n: c\ndescription: Draws maps", "Draws maps"),
    "a place to fill in": ("model: {{MODEL}}\ndescription: Draws maps", "Draws maps"),
    "no such date": ("date: 2026-13-45\ndescription: Draws maps", "Draws maps"),
    "anchors": ("a: &a {b: c}\nd: *a\ndescription: Draws maps", "Draws maps"),
    "an alias": ("x: &d Draws maps\ndescription: *d", "Draws maps"),
    "an alias in a list": ("x: [&d Draws maps]\ndescription: *d", "Draws maps"),
    "an alias of the newest": ("x: &d Old\ny: &d Draws maps\ndescription: *d", "Draws maps"),
    "an anchor that is used": ("description: &d Draws maps\nshort: *d", "Draws maps"),
    "an anchor before quotes": ("description: &d 'Draws maps'", "Draws maps"),
    "a tag on it": ("description: !!str Draws maps", "Draws maps"),
    "a tag elsewhere": ("x: !!python/object:os.x {}\ndescription: Draws maps", "Draws maps"),
    "a number": ("description: 7", "7"),
    "twice": ("description: Old\ndescription: Draws maps", "Draws maps"),
}
MEANT_AS_YAML: dict[str, tuple[str, str]] = {
    "a colon": ("description: Draws maps. Use when: asked", "Draws maps. Use when: asked"),
    "a colon at the end": ("description: Draws maps:\nlicense: MIT", "Draws maps:"),
    "a colon further down": (
        "description: Draws maps\n  of towns. Use when: asked\n  twice\nlicense: MIT",
        "Draws maps of towns. Use when: asked twice",
    ),
    "a colon on a line of its own": (
        "description:\n  Draws maps. Goes with the other: first that,\n  then this.",
        "Draws maps. Goes with the other: first that, then this.",
    ),
    "a colon on the next line": (
        "description:\n  on the next line: with colon\nlicense: MIT",
        "on the next line: with colon",
    ),
    "dashes on the next lines": (
        "description:\n- Draws maps\n- Big: ones",
        "- Draws maps - Big: ones",
    ),
    "a word with an exclamation mark": ("description: !important stuff", "!important stuff"),
    "an exclamation mark": ("description: ! stuff\nlicense: MIT", "! stuff"),
    "a word with an ampersand": ("description: &copy stuff\n  and: no", "&copy stuff and: no"),
    "an ampersand and plain words": (
        "description: &copy stuff\n  and so on",
        "&copy stuff and so on",
    ),
    "a word with an asterisk": ("description: *important", "*important"),
    "a mark first": ("description: [geo|map] Draws maps", "[geo|map] Draws maps"),
    "a brace first": ("description: {x} Draws: maps", "{x} Draws: maps"),
    "an at sign": ("description: @maps draws", "@maps draws"),
    "a back quote": ("description: `maps` draws", "`maps` draws"),
    "quotes at the start alone": ('description: "Maps" are drawn', '"Maps" are drawn'),
    "quotes inside quotes": ('description: "Draws "maps" here"', 'Draws "maps" here'),
    "a tabulator": ("description:\tDraws maps", "Draws maps"),
    "a block that is not set in": ("description: >\nDraws maps\nof: x", "Draws maps"),
    "another field is broken, this a block": (
        "argument-hint: [a] [b]\ndescription: >-\n  Draws\n  maps: all\nlicense: MIT",
        "Draws maps: all",
    ),
    "another field is broken, this in quotes": (
        "hint: <a>: [b\ndescription: 'it''s maps'",
        "it's maps",
    ),
    "a field has a colon, then a block": (
        "when: asked: always\ndescription: |\n  Draws\n  maps\n",
        "Draws\nmaps\n",
    ),
    "nested without end": ("x: " + "[" * 400 + "]" * 400 + "\ndescription: Draws", "Draws"),
    "a control character": ("x: a\x07b\ndescription: Draws maps", "Draws maps"),
}


@pytest.mark.requirement("skills:front-matter")
@pytest.mark.parametrize(("text", "told"), YAML.values(), ids=YAML.keys())
def test_a_field_is_read_in_every_form_yaml_has(text: str, told: str) -> None:
    assert text_fields(f"name: maps\n{text}", WANTED) == {"name": "maps", "description": told}


@pytest.mark.requirement("skills:front-matter")
@pytest.mark.parametrize(("text", "told"), MEANT_AS_YAML.values(), ids=MEANT_AS_YAML.keys())
def test_what_is_nearly_yaml_is_read_as_it_was_meant(text: str, told: str) -> None:
    assert text_fields(f"name: maps\n{text}", WANTED) == {"name": "maps", "description": told}


def test_aliases_make_nothing_grow() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)
    )
    assert text_fields(f"{bomb}name: maps\ndescription: *a59\n", WANTED) == {"name": "maps"}


def test_an_alias_stands_for_a_text_and_never_for_what_is_built_of_others() -> None:
    text = "a: &a x\na: &a [*a, *a]\nname: maps\ndescription: *a\n"
    assert text_fields(text, WANTED) == {"name": "maps"}


@pytest.mark.parametrize("text", ["- a", "words", "x: [", "x: " + "[" * 40 + "]" * 40])
def test_what_has_none_of_the_fields_and_is_no_yaml_is_refused(text: str) -> None:
    with pytest.raises(BadYamlError):
        text_fields(text, WANTED)
