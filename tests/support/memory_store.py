"""Real stores in memory, created quickly.

Owns:  the simulation's database: the real schema and SQL, copied from one migrated image instead of
       being migrated for every world.
"""

from functools import cache

import apsw

from holon.adapters.sqlite.database.connection import open_memory
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.store import SqliteStore, open_connection_store
from holon.adapters.sqlite.writer.writer_thread import Writer


@cache
def _migrated_image() -> bytes:
    connection = open_memory()
    migrate(connection)
    image = connection.serialize("main")
    connection.close()
    return image


def memory_connection() -> apsw.Connection:
    """Return a connection to a fresh, migrated database in memory."""
    connection = open_memory()
    connection.deserialize("main", _migrated_image())
    return connection


def memory_store(connection: apsw.Connection, writer: Writer) -> SqliteStore:
    """Return a store over a connection that outlives it."""
    return open_connection_store(connection, lambda _: writer)
