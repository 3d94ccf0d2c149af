"""Serves the control API of a running host on its sockets.

Owns:  the composition of application, authorizer and listeners; the last replies at shutdown.
Rule 1: requests in progress at shutdown are answered within a grace period; streams and waits end.
Rule 2: connections use at most half of the process's file handles, divided among the sockets, so
        that agents keep theirs under a flood of connections.
"""

import os
import socket
from collections.abc import Awaitable, Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import anyio
from anyio.lowlevel import checkpoint

from holon.adapters.exec.process_table import runs_for_an_agent
from holon.adapters.system.processes import open_files_max
from holon.http.access import Authorizer, RateLimiter, ServerNames, Token
from holon.http.app import App, RouteTable
from holon.http.context import HttpContext, Traffic
from holon.http.exchange import (
    Answerer,
    AnyReply,
    BodySource,
    PendingReply,
    Reply,
    RequestHead,
)
from holon.http.server.listeners import Listeners
from holon.http.table import ROUTES
from holon.model.limits import (
    HTTP_AUTH_FAILURES_COUNT_MAX,
    HTTP_AUTH_FAILURES_PER_MINUTE_COUNT,
    HTTP_CONNECTIONS_COUNT_MAX,
    HTTP_LAST_REPLIES_MS_MAX,
    SECOND_MS,
)

ReplyT = TypeVar("ReplyT", bound=AnyReply)
_TURNS_TO_SEND = 8  # of the loop, from a reply that is made to one that is on its way


async def serve_control_plane(
    context: HttpContext,
    sockets: Sequence[socket.socket],
    *,
    token: Token,
    names: frozenset[bytes],
    ending: anyio.Event | None = None,
) -> None:
    """Serve these sockets until cancelled, or until `ending` is set."""
    app = App(
        table=RouteTable(ROUTES),
        context=context,
        authorizer=Authorizer(
            owner_uid=os.getuid(),
            token=token,
            runs_for_an_agent=runs_for_an_agent,
        ),
        names=ServerNames(hosts=names),
        failed_attempts=RateLimiter(
            clock=context.clock,
            burst=HTTP_AUTH_FAILURES_COUNT_MAX,
            per_minute=HTTP_AUTH_FAILURES_PER_MINUTE_COUNT,
        ),
    )
    await context.tally.begin(context.host.reads, now=context.facts.started_at)
    context.host.retention.before_each_step(partial(context.tally.count_all, context.host.reads))
    replies = _Replies(app.answer, context.traffic)
    async with anyio.create_task_group() as answering:
        listeners = Listeners(
            answer=replies.answer,
            clock=context.clock,
            is_authenticated=app.is_authenticated,
            connections_max=min(HTTP_CONNECTIONS_COUNT_MAX, open_files_max() // 2 // len(sockets)),
        )
        context.traffic.open_count = lambda: listeners.open_count
        answering.start_soon(listeners.serve, sockets)
        answering.start_soon(
            context.token_watch.run, token, context.clock, context.host.events.wake_all
        )
        await (ending or anyio.Event()).wait()
        listeners.end_streams()
        with anyio.move_on_after(HTTP_LAST_REPLIES_MS_MAX / SECOND_MS):
            await replies.finished()
        answering.cancel_scope.cancel()


class _Replies:
    """Counts requests in progress, and replies by status."""

    def __init__(self, answer: Answerer, traffic: Traffic) -> None:
        self._answer = answer
        self._traffic = traffic
        self._under_way = 0
        self._none_left = anyio.Event()

    async def answer(self, head: RequestHead, body: BodySource) -> AnyReply:
        reply = await self._counted(self._answer(head, body))
        if not isinstance(reply, PendingReply):
            return reply

        async def made(scope: anyio.CancelScope) -> Reply:
            return await self._counted(reply.made(scope))

        return PendingReply(made=made)

    async def _counted(self, answering: Awaitable[ReplyT]) -> ReplyT:
        self._under_way += 1
        try:
            reply = await answering
            if not isinstance(reply, PendingReply):  # counted once it is made
                status = reply.status if isinstance(reply, Reply) else HTTPStatus.OK
                self._traffic.answered[status // 100] += 1
                if status >= HTTPStatus.BAD_REQUEST:
                    self._traffic.refusals[status] += 1
            return reply
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._none_left.set()
                self._none_left = anyio.Event()

    async def finished(self) -> None:
        """Return once no request is in progress and the last replies are sent."""
        if self._under_way:
            await self._none_left.wait()
        for _ in range(_TURNS_TO_SEND):
            await checkpoint()
