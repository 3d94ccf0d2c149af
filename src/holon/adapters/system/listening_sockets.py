"""The listening sockets of the control plane.

Owns:  `<home>/run`, the unix socket in it and the TCP socket; a short path under which a socket can
       be bound however deep the home lies: the system takes about a hundred characters.
Rule 1: the run folder is 0700 and the owner's; one that other users can enter is refused.
Rule 2: a socket file is removed only when it is a socket of ours on which nothing answers. Anything
        else at its path, and any process that answers, makes the start fail.
"""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holon.adapters.system.run_files import UnsafePathError
from holon.model.errors import HolonError
from holon.model.limits import HTTP_UNSENT_BYTES_MAX

_SUN_PATH_BYTES_MAX: Final = 107
_BACKLOG: Final = 512


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


class AddressTakenError(HolonError):
    """Somebody else listens where we should, or something foreign lies there."""

    code = "address_taken"


class AddressUnusableError(HolonError):
    """This machine or user cannot listen at that address."""

    code = "address_unusable"


def prepare_run_folder(path: Path) -> None:
    """Make the folder for sockets and pid files, or insist that it is private."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = os.stat(path, follow_symlinks=False)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise UnsafePathError(
            f"{path} is open to other users", hint=f"run: chmod 700 {path} (and own it)"
        )


def bind_unix(path: Path) -> socket.socket:
    """Listen on a socket file that only its owner may use."""
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    earlier = os.umask(0o177)
    try:
        with socket_address(str(path)) as address:
            bound.bind(address)
    except OSError as error:
        bound.close()
        raise AddressTakenError(f"cannot listen on {path}: {error.strerror}") from None
    finally:
        os.umask(earlier)
    return _listening(bound)


def bind_tcp(host: str, port: int) -> socket.socket:
    """Listen on an address of this machine."""
    return _listening(_bound_tcp(host, port))


def require_bindable(host: str, port: int) -> None:
    """Raise AddressTakenError or AddressUnusableError when an address cannot be bound now."""
    _bound_tcp(host, port).close()


def _bound_tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by connections. Else the kernel takes megabytes for a reader that has stopped, and
    # it seems to read on for as long as that lasts; and what is sent waits for more of it.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, HTTP_UNSENT_BYTES_MAX)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _not_bound(error, host, port) from None
    return bound


def _not_bound(error: OSError, host: str, port: int) -> HolonError:
    where = f"cannot listen on {host}:{port}"
    match error.errno:
        case errno.EADDRNOTAVAIL:
            return AddressUnusableError(
                f"{where}: this machine has no address {host}",
                hint="name one of its addresses with --host; `ip address` lists them",
            )
        case errno.EADDRINUSE:
            return AddressTakenError(
                f"{where}: {error.strerror}",
                hint="another program has this port; choose one with --port",
            )
        case errno.EACCES:
            return AddressUnusableError(
                f"{where}: {error.strerror}",
                hint="this port is not for ordinary users; choose one from 1024 on with --port",
            )
        case _:
            return AddressUnusableError(
                f"{where}: {error.strerror}", hint="choose another address with --host and --port"
            )


def answers(path: Path) -> bool:
    """Whether a process listens on a socket file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            with socket_address(str(path)) as address:
                probe.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # busy or forbidden: assume a listener
    return True


def _remove_stale(path: Path) -> None:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(facts.st_mode) or facts.st_uid != os.getuid():
        raise AddressTakenError(
            f"{path} is not a socket of ours", hint="look what it is, and move it away"
        )
    if answers(path):
        raise AddressTakenError(
            f"another program responds on {path}", hint="stop it, or choose another HOLON_HOME"
        )
    path.unlink()


def _listening(bound: socket.socket) -> socket.socket:
    bound.listen(_BACKLOG)
    bound.setblocking(False)
    return bound
