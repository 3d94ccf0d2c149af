"""Exactly three forms of a selector, and everything else refused where nothing can happen yet."""

import pytest

from holon.decide.agents.templates import parse_selector
from holon.model.agents import (
    BadTemplateError,
    GithubTree,
    NamedTemplate,
    TemplateFolder,
    TemplateSelector,
)

URL = "https://github.com/acme/agents/tree/main/templates/ci"


@pytest.mark.requirement("agent-init:one-selector-three-forms")
@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("holon-default", NamedTemplate(template_id="holon-default")),
        ("My_template.v2", NamedTemplate(template_id="My_template.v2")),
        ("/srv/templates/ops", TemplateFolder(path="/srv/templates/ops")),
        ("/srv/my templates/ops", TemplateFolder(path="/srv/my templates/ops")),
        (URL, GithubTree(owner="acme", repo="agents", ref="main", path="templates/ci")),
        (
            "https://github.com/a-b/.github/tree/0123abc/x",
            GithubTree(owner="a-b", repo=".github", ref="0123abc", path="x"),
        ),
        (
            "https://github.com/acme/agents/tree/v1.2-rc+1/.holon/@team/ci",
            GithubTree(owner="acme", repo="agents", ref="v1.2-rc+1", path=".holon/@team/ci"),
        ),
    ],
)
def test_a_selector_is_an_id_a_path_or_a_tree(text: str, selector: TemplateSelector) -> None:
    assert parse_selector(text) == selector
    if isinstance(selector, GithubTree):
        assert selector.url == text


@pytest.mark.requirement("agent-init:id-is-a-simple-name")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "..",
        "a/b",
        "./a",
        "../a",
        "~/a",
        "~",
        "a\\b",
        "-x",
        "--help",
        "a b",
        "é",
        "a\n",
        "a\x00",
        "x" * 65,
        "acme/agents@ci",
        "file:x",
        "a%2fb",
    ],
)
def test_an_id_is_a_simple_name(text: str) -> None:
    with pytest.raises(BadTemplateError) as caught:
        parse_selector(text)
    assert caught.value.hint is not None
    assert "absolute path" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["/a/../etc", "/..", "/a/\x1b[31m", "/a\0b", "/" + "a" * 5_000, "/a\nb"]
)
def test_a_path_leads_where_it_says(text: str) -> None:
    with pytest.raises(BadTemplateError):
        parse_selector(text)


@pytest.mark.requirement("agent-init:github-url-form")
@pytest.mark.requirement("agent-init:github-url-names-the-directory")
@pytest.mark.parametrize(
    "text",
    [
        "http://github.com/acme/agents/tree/main/ci",
        "HTTPS://github.com/acme/agents/tree/main/ci",
        "https://GitHub.com/acme/agents/tree/main/ci",
        "https://gitlab.com/acme/agents/tree/main/ci",
        "https://www.github.com/acme/agents/tree/main/ci",
        "https://github.com.evil/acme/agents/tree/main/ci",
        "https://github.com.evil.example/acme/agents/tree/main/ci",
        "https://evil.example/https://github.com/acme/agents/tree/main/ci",
        "https://gіthub.com/acme/agents/tree/main/ci",  # noqa: RUF001 - a Cyrillic letter
        "https://github.com@evil.example/acme/agents/tree/main/ci",
        "https://user:pass@github.com/acme/agents/tree/main/ci",
        "https://github.com:443/acme/agents/tree/main/ci",
        "https://github.com:8443/acme/agents/tree/main/ci",
        "https://github.com\\@evil.example/acme/agents/tree/main/ci",
        "https:/github.com/acme/agents/tree/main/ci",
        "github.com/acme/agents/tree/main/ci",
        "git://github.com/acme/agents/tree/main/ci",
        "ssh://git@github.com/acme/agents",
        "file:///etc",
        "javascript://github.com/acme",
        "https://raw.githubusercontent.com/acme/agents/main/ci/AGENTS.md",
        "https://github.com",
        "https://github.com/",
        "https://github.com/acme",
        "https://github.com/acme/agents",
        "https://github.com/acme/agents.git",
        "https://github.com/acme/agents/",
        "https://github.com/acme/agents/tree",
        "https://github.com/acme/agents/tree/main",
        "https://github.com/acme/agents/tree/main/",
        "https://github.com/acme/agents/tree/main/ci/",
        "https://github.com/acme/agents/tree/main//ci",
        "https://github.com//acme/agents/tree/main/ci",
        "https://github.com/acme/agents/blob/main/ci/AGENTS.md",
        "https://github.com/acme/agents/raw/main/ci",
        "https://github.com/acme/agents/tree/main/../../other/x",
        "https://github.com/acme/agents/tree/main/ci/..",
        "https://github.com/acme/../tree/main/ci",
        "https://github.com/../agents/tree/main/ci",
        "https://github.com/acme/agents/tree/../main/ci",
        "https://github.com/acme/agents/tree/a..b/ci",
        "https://github.com/acme/agents/tree/--upload-pack=x/ci",
        "https://github.com/acme/agents/tree/-o/ci",
        "https://github.com/acme/agents/tree/main/-o",
        "https://github.com/acme/agents/tree/main/ci/--output=x",
        "https://github.com/-acme/agents/tree/main/ci",
        "https://github.com/acme/-agents/tree/main/ci",
        "https://github.com/acme/agents/tree/main/%2e%2e/x",
        "https://github.com/acme/agents/tree/main%2fx/ci",
        "https://github.com/acme%2fother/agents/tree/main/ci",
        "https://github.com/acme/agents/tree/main/ci?x=1",
        "https://github.com/acme/agents/tree/main/ci#x",
        "https://github.com/acme/agents/tree/main/ci\r\nHost: evil",
        "https://github.com/acme/agents/tree/main/c\ti",
        "https://github.com/acme/agents/tree/main/ci\0",
        " https://github.com/acme/agents/tree/main/ci",
        "https://github.com/acme/agents/tree/main/ci ",
        "https://github.com/acme/agents/tree/main/c\u202ei",
        "https://github.com/acme/agents/tree/main/" + "x/" * 600 + "y",
        "https://169.254.169.254/acme/agents/tree/main/ci",
    ],
)
def test_an_address_of_any_other_form_is_refused(text: str) -> None:
    with pytest.raises(BadTemplateError) as caught:
        parse_selector(text)
    assert len(caught.value.message) < 300
    assert caught.value.message.isprintable()
