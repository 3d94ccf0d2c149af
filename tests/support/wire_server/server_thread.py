"""A wire server beside a program that has no loop of its own.

Owns:  the thread the server lives in. The hosts that ask it come and go; it stays where it is.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from holon.model.providers.models import TransportKind
from tests.support.wire_server.answering import Speaker
from tests.support.wire_server.server import open_wire_server


@contextmanager
def wire_server_thread(speaker: Speaker) -> Iterator[str]:
    """Give the base URL of a server that speaks chat completions while the block runs."""
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()
    found: SimpleQueue[str] = SimpleQueue()

    async def serve() -> None:
        async with open_wire_server(speaker, needs_key=False, records=False) as server:
            found.put(server.base_url(TransportKind.OPENAI_CHAT_COMPLETIONS))
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield found.get(timeout=30)
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()
        loop.close()
