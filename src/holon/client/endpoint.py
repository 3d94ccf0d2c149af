"""Finds the runtime a command talks to.

Owns:  the search order: options, then environment, then the run files of the home.
Rule 1: the token of a home is sent only to the address its runtime recorded, and only while that
        very process is alive: afterwards another program may listen there. An address given
        explicitly gets only the token given explicitly.
Rule 2: nothing is sent here. Whether the endpoint responds is found out by calling it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from holon.adapters.system.run_files import RunPaths
from holon.model.errors import BadInputError, HolonError

ADDRESS_VARIABLE: Final = "HOLON_HTTP_ADDR"
TOKEN_VARIABLE: Final = "HOLON_CONTROL_TOKEN"
START_ONE: Final = "start one with: holon daemon start"
_PORTS: Final = {"http": 80, "https": 443}
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class NoRuntimeError(HolonError):
    """No runtime is running."""

    code = "no_runtime"
    hint = START_ONE


class BadEndpointError(BadInputError):
    """The address of a runtime is invalid."""

    code = "bad_endpoint"
    hint = "write it as http://127.0.0.1:7878 or unix:/path/to/holon.sock"


class UnixEndpoint(NamedTuple):
    """A Unix socket; the kernel authenticates both sides."""

    path: Path


class TcpEndpoint(NamedTuple):
    """A TCP address with its token."""

    host: str
    port: int
    token: str | None = None
    secure: bool = False
    prefix: str = ""  # of every path, behind a proxy

    def shown(self) -> str:
        """Return the address as a URL."""
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{self.prefix}"


Endpoint: TypeAlias = UnixEndpoint | TcpEndpoint


class EndpointOptions(NamedTuple):
    """The explicit endpoint options of a command."""

    connect: str | None = None
    token: str | None = None
    token_file: Path | None = None


def find_endpoint(home: Path, wanted: EndpointOptions, environ: Mapping[str, str]) -> Endpoint:
    """Find the endpoint, or raise NoRuntimeError, BadEndpointError or BadTokenError."""
    files = RunPaths(home)
    if wanted.connect is not None:
        return _named(wanted.connect, files, wanted, environ)
    if address := environ.get(ADDRESS_VARIABLE):
        return _named(f"http://{address}", files, wanted, environ)
    if files.socket.is_socket():
        return UnixEndpoint(files.socket)
    if address := _written_down(files):
        return _named(f"http://{address}", files, wanted, environ)
    raise NoRuntimeError(f"no runtime is running for {home}")


def _named(
    address: str, files: RunPaths, wanted: EndpointOptions, environ: Mapping[str, str]
) -> Endpoint:
    if address.startswith("unix:"):
        return UnixEndpoint(Path(address.removeprefix("unix:").removeprefix("//")))
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise BadEndpointError(f"{address!r} is not a runtime address") from None
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in _PORTS or not parts.hostname or not plain:
        raise BadEndpointError(f"{address!r} is not a runtime address")
    found = TcpEndpoint(
        host=_EVERYWHERE.get(parts.hostname, parts.hostname),
        port=_PORTS[parts.scheme] if port is None else port,
        secure=parts.scheme == "https",
        prefix=parts.path.rstrip("/"),
    )
    return found._replace(token=_token(found, files, wanted, environ))


def _token(
    found: TcpEndpoint, files: RunPaths, wanted: EndpointOptions, environ: Mapping[str, str]
) -> str | None:
    if wanted.token is not None:
        return wanted.token
    if wanted.token_file is not None:
        return _read_token(wanted.token_file)
    if given := environ.get(TOKEN_VARIABLE):
        return given
    host, _, port = (_written_down(files) or "").rpartition(":")
    host = host.strip("[]")
    is_own = (_EVERYWHERE.get(host, host), port) == (found.host, str(found.port))
    return _read_token(files.token) if is_own and files.token.exists() else None


# Imported where they are needed: most commands find the socket file and need neither.
def _written_down(files: RunPaths) -> str | None:
    """Return the recorded address of the home's runtime, if that process is alive."""
    from holon.adapters.exec.process_table import is_living
    from holon.adapters.system.run_files import RunFiles

    record = RunFiles(files.home).read_record()
    return record.http_addr if record is not None and is_living(record.identity()) else None


def _read_token(path: Path) -> str:
    from holon.adapters.system.control_token import TokenFile

    return TokenFile(path).text()
