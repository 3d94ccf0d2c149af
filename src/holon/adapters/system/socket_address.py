"""Names for socket files.

Owns:  the name under which a socket file can be bound and reached, however deep it lies: the system
       takes about a hundred characters, and homes have longer paths than that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SUN_PATH_BYTES_MAX: Final = 107


@contextmanager
def socket_address(path: str) -> Iterator[str]:
    """Give the file a name the system takes, for as long as the block runs; may raise OSError."""
    if len(os.fsencode(path)) <= _SUN_PATH_BYTES_MAX:
        yield path
        return
    folder, name = os.path.split(path)
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
