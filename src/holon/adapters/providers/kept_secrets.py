"""Secrets that are kept, whether or not anybody uses them now.

Owns:  which of a host's variables and stored credentials are secret.
Rule 1: what is kept and not in use is hidden like what is: a command could read it and show it.
Rule 2: a variable is a key by its ending, or because the catalog or the settings name it as one.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from holon.adapters.providers.catalog import builtin_catalog
from holon.adapters.providers.credentials import Profiles
from holon.adapters.system.secrets import SecretRegistry
from holon.model.errors import HolonError

_KEY_ENDING: Final = "_API_KEY"
_TOKEN_ENDING: Final = "token"  # of what a login document calls its secrets


def learn_kept_secrets(
    registry: SecretRegistry,
    environ: Mapping[str, str],
    profiles: Profiles,
    *,
    variables: Collection[str],
) -> None:
    """Teach the registry what is kept in the environment and among the credentials."""
    for name in secret_variables(environ, variables=variables):
        registry.learn(name, environ[name])
    try:
        stored = profiles()
    except HolonError:
        return  # told when one of them is used
    for name, each in stored.items():
        for secret in _secrets_in(each.material):
            registry.learn(f"credential profile {name}", secret)


def secret_variables(environ: Mapping[str, str], *, variables: Collection[str]) -> tuple[str, ...]:
    """Return the names in an environment that stand for keys."""
    known = {auth.env for each in builtin_catalog().providers.values() for auth in each.auth}
    return tuple(
        name for name in environ if name.endswith(_KEY_ENDING) or name in known or name in variables
    )


def _secrets_in(material: str) -> Iterator[str]:
    """Return what is secret of a stored credential: all of it, and the tokens of a login."""
    yield material
    try:
        pending = [msgspec.json.decode(material)]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    while pending:
        found = pending.pop()
        for name, part in found.items() if isinstance(found, dict) else ():
            if isinstance(part, str) and name.endswith(_TOKEN_ENDING):
                yield part
            pending.append(part)
