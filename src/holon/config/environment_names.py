"""The environment variables Holon reads or sets.

Owns:  the names that are not settings, and the families with a provider's id in the name. A
       setting's own variable is declared with the setting in config/settings.
Rule 1: a variable with an empty value counts as unset.
Rule 2: unknown variables are ignored: other programs may use the prefix. `unknown_names` reports
        those that look misspelled.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

PREFIX: Final = "HOLON_"
HOME: Final = "HOLON_HOME"
CONTROL_TOKEN: Final = "HOLON_CONTROL_TOKEN"
CALLBACK_BASE_URL: Final = "HOLON_CALLBACK_BASE_URL"

OTHER_NAMES: Final[Mapping[str, str]] = {
    HOME: "the folder that holds everything Holon keeps (default: ~/.holon)",
    CALLBACK_BASE_URL: "what trigger URLs begin with, when others call under another address",
    "HOLON_FAILPOINTS": "where a test makes the runtime fail on purpose",
}

# Not a provider, though the name has the form of one.
_RESERVED: Final = frozenset({CALLBACK_BASE_URL})

FAMILIES: Final[Mapping[str, str]] = {
    "BASE_URL": "providers.<id>.base_url",
    "REASONING_EFFORT": "providers.<id>.reasoning_effort",
}
_FAMILY: Final = re.compile(rf"{PREFIX}([A-Z0-9][A-Z0-9_]*)_({'|'.join(FAMILIES)})\Z")


def callback_base_url(environ: Mapping[str, str]) -> str | None:
    """Return the configured base of trigger URLs, if any."""
    return environ.get(CALLBACK_BASE_URL) or None


def provider_word(provider: str) -> str:
    """Return a provider's id as variables spell it: `openai-codex` is `OPENAI_CODEX`."""
    return re.sub(r"[^A-Z0-9]", "_", provider.upper())


def provider_variable(provider: str, family: str) -> str:
    """Return the variable of a family for one provider: `HOLON_OPENAI_BASE_URL`."""
    return f"{PREFIX}{provider_word(provider)}_{family}"


def read_family(name: str, providers: Iterable[str]) -> tuple[str, str] | None:
    """Return the setting and the provider a variable stands for, or nothing.

    A word may stand for several ids; one of `providers` is meant if any fits, else the id with
    hyphens.
    """
    found = _FAMILY.match(name)
    if found is None or name in _RESERVED:
        return None
    word, family = found.groups()
    derived = word.lower().replace("_", "-")
    known = next((one for one in sorted(providers) if provider_word(one) == word), derived)
    return FAMILIES[family], known


def unknown_names(environ: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """Return the variables that look misspelled, each with the closest known name."""
    import difflib  # imported only for this check

    names = [*known, *OTHER_NAMES]
    strange = [
        name
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in names and read_family(name, ()) is None
    ]
    near = {name: difflib.get_close_matches(name, names, n=1, cutoff=0.85) for name in strange}
    return {name: close[0] for name, close in near.items() if close}
