"""The token a service asks for.

Owns:  which one that is, and whether anybody could be let in with it.
Rule 1: a token that cannot be used refuses the start: a service nobody can call is not up.
Rule 2: only the home's own file is made by us. One the operator names must be there.
"""

import os
from functools import partial
from pathlib import Path
from typing import Final

from holon.adapters.system.control_token import GivenToken, TokenFile
from holon.adapters.system.secrets import SecretRegistry
from holon.serve.effective_config import ServeRequest

_NAME: Final = "control_token"


def require_usable_token(asked: ServeRequest, own: Path) -> None:
    """Raise BadTokenError for a token that cannot be used; makes nothing."""
    if asked.token is not None:
        GivenToken(asked.token)
    elif asked.token_file is not None:
        TokenFile(asked.token_file).require_usable()
    elif os.path.lexists(own):
        TokenFile(own).require_usable(is_replaceable=True)


def service_token(
    asked: ServeRequest, own: Path, secrets: SecretRegistry
) -> GivenToken | TokenFile:
    """Return the token in force, known to whoever hides secrets; raises BadTokenError."""
    if asked.token is not None:
        secrets.learn(_NAME, asked.token)
        return GivenToken(asked.token)
    file = TokenFile(asked.token_file or own, learn=partial(secrets.learn, _NAME))
    if asked.token_file is None:
        file.make_if_missing()
    require_usable_token(asked, own)
    secrets.learn(_NAME, file.text())
    return file
