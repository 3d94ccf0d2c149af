"""A wire server in a thread, for a program without an event loop.

Owns:  the thread of the server. Hosts that call it may restart; it keeps running.
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
