"""`holon serve` with armed failpoints, to be killed at a named place.

Owns:  `python -m tests.support.serve_process`: exactly the service the command runs, on the home
       HOLON_HOME names, with the failpoints HOLON_FAILPOINTS arms. When ready it prints its
       address, in the same line of JSON as the command.
Rule 1: a misspelt failpoint or an unusable home is one sentence on stderr and exit code 2.
Rule 2: with --prune-often retention runs every few commits, as it does in a burst of hundreds;
        everything else is unchanged.
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from holon.config.load_settings import Settings, load_settings
from holon.http.context import RuntimeFacts
from holon.model.errors import HolonError, first_error
from holon.model.values import AgentId
from holon.runtime.events import retention
from holon.serve.access_plan import AccessRequest
from holon.serve.compose import Hooks
from holon.serve.effective_config import ServeRequest
from holon.serve.foreground import ReadinessSignals, run_service, serve
from tests.support.armed_failpoints import ArmedFailpoints, parse_failpoints

PRUNE_OFTEN: Final = "--prune-often"
_OFTEN_COMMITS_COUNT: Final = 8


def main(arguments: list[str]) -> int:
    """Serve until told to end, and return the exit code."""
    environ = dict(os.environ)
    try:
        armed = parse_failpoints(environ.get("HOLON_FAILPOINTS", ""))
        settings = load_settings(Path(environ["HOLON_HOME"]).absolute(), environ)
    except HolonError as error:
        return _refused(error)
    if PRUNE_OFTEN in arguments:
        vars(retention)["RETENTION_COMMITS_COUNT"] = _OFTEN_COMMITS_COUNT
    failed: HolonError | None = None
    try:
        hooks = Hooks(failpoints=ArmedFailpoints(armed))
        run_service(partial(_served, settings, environ, hooks))
    except* HolonError as several:
        failed = first_error(several)
    return 0 if failed is None else _refused(failed)


async def _served(settings: Settings, environ: dict[str, str], hooks: Hooks) -> None:
    asked = ServeRequest(access=AccessRequest(port=0), default_agent=AgentId("main"))
    await serve(settings, environ, asked, signs=ReadinessSignals(announce=_announce), hooks=hooks)


def _announce(facts: RuntimeFacts) -> None:
    said = {"ok": True, "pid": facts.pid, "http_addr": facts.http_addr}
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _refused(error: HolonError) -> int:
    sys.stderr.write(f"holon: {error.message}" + (f"; {error.hint}" if error.hint else "") + "\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
