"""Optimistic commits: decide, apply, and decide again when the rows changed in between.

Owns:  the one compare-and-set loop, and waiting for disk space.
Rule 1: a refused commit changed nothing, so the only correct reaction is a fresh decision.
Rule 2: a full disk is waited out with backoff where work would otherwise be lost; at the ingress it
        is an error returned to the caller.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

from holon.decide.events.audit import audited
from holon.model.commits import Applied, Commit, CommitOutcome
from holon.model.errors import Refusal, RefusalCode, RefusedError, StoreFullError
from holon.model.limits import STORE_RETRY_MS_MAX, STORE_RETRY_MS_MIN
from holon.ports.clock import Clock
from holon.ports.store import Store

DECISIONS_COUNT_MAX: Final = 8
T = TypeVar("T")
_log = logging.getLogger(__name__)

Decide: TypeAlias = Callable[[], Awaitable[Commit | Refusal | None]]


async def commit_decided(store: Store, decide: Decide) -> Commit | None:
    """Apply what `decide` returns, deciding anew while the rows keep moving.

    Returns the commit that was applied, or None when `decide` found nothing to do. Raises
    RefusedError when it declined, or when the rows never held still.
    """
    for _ in range(DECISIONS_COUNT_MAX):
        decided = await decide()
        if decided is None:
            return None
        if isinstance(decided, Refusal):
            raise RefusedError(decided)
        if isinstance(await store.apply(audited(decided)), Applied):
            return decided
    raise RefusedError(
        Refusal(
            code=RefusalCode.BUSY,
            message="the agent kept changing while the request was being decided",
            hint="try again",
        )
    )


async def apply_patiently(store: Store, commit: Commit, *, clock: Clock) -> CommitOutcome:
    """Apply a commit, waiting as long as the disk is full."""
    submitted = audited(commit)
    return await patiently(lambda: store.apply(submitted), clock=clock)


async def patiently(attempt: Callable[[], Awaitable[T]], *, clock: Clock) -> T:
    """Try until the disk has room. Only for what may be tried twice."""
    pause_ms = STORE_RETRY_MS_MIN
    while True:
        try:
            return await attempt()
        except StoreFullError as full:
            _log.warning("%s; trying again", full.message, extra={"event": "store_full"})
            await clock.sleep_for(pause_ms)
            pause_ms = min(2 * pause_ms, STORE_RETRY_MS_MAX)
