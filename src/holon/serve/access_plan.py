"""Derives where a server listens and who may reach it from the access options.

Owns:  the rules of the access modes. Pure: it binds no socket and reads no file.
Rule 1: by default only this machine can reach the service.
Rule 2: a service that other machines can reach requires a token chosen by the operator; a generated
        token is for this machine only.
Rule 3: a contradiction is refused with the option to change.
"""

from enum import StrEnum
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from holon.config.environment_names import CALLBACK_BASE_URL
from holon.model.errors import BadInputError
from holon.model.record import Record

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 7878
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class AccessMode(StrEnum):
    """From where the control API is reachable."""

    LOCAL = "local"
    TUNNEL = "tunnel"
    LAN = "lan"
    TAILNET = "tailnet"


class BadAccessError(BadInputError):
    """The access options contradict each other."""

    code = "bad_access"


class AccessRequest(Record, frozen=True, kw_only=True):
    """The access options as given."""

    mode: AccessMode = AccessMode.LOCAL
    listen: str | None = None  # HOST:PORT
    host: str | None = None
    port: int | None = None
    advertise: str | None = None
    callback_base: str | None = None  # what trigger URLs begin with, instead of `advertise`
    has_own_token: bool = False


class AccessPlan(Record, frozen=True, kw_only=True):
    """The address to bind, the accepted host names, and the advertised address."""

    mode: AccessMode
    host: str
    port: int
    advertise: str | None = None
    callback_base: str | None = None

    def address(self, port: int) -> str:
        """Return the listening address as part of a URL, given the bound port."""
        return f"{_bracketed(self.host)}:{port}"

    def base_url(self, port: int) -> str:
        """Return the base of trigger URLs, given the bound port."""
        return self.callback_base or self.advertise or f"http://{self.address(port)}"

    def host_names(self, port: int) -> frozenset[bytes]:
        """Return the accepted Host headers, given the bound port."""
        names = {f"{name}:{port}" for name in _LOOPBACK_NAMES}
        if self.host not in _EVERYWHERE:
            names.add(self.address(port))
        for url in (self.advertise, self.callback_base):
            names |= set() if url is None else _advertised_names(url)
        return frozenset(name.encode() for name in names)


def plan_access(asked: AccessRequest) -> AccessPlan:
    """Derive the access plan, or raise BadAccessError."""
    host, port = _address(asked)
    advertise = _public(asked.advertise, "--advertise")
    callback_base = _public(asked.callback_base, CALLBACK_BASE_URL)
    remote = not _is_loopback(host)
    if asked.mode is AccessMode.LOCAL and remote:
        raise BadAccessError(
            f"{host} can be reached from other machines, and the access mode is local",
            hint="say --access lan or --access tailnet, and give a token",
        )
    if asked.mode is AccessMode.TUNNEL and (remote or (advertise or callback_base) is None):
        raise BadAccessError(
            "a tunnel ends on this machine and begins somewhere else",
            hint="listen on 127.0.0.1 and give --advertise with the address outside",
        )
    if asked.mode in (AccessMode.LAN, AccessMode.TAILNET) and not remote:
        raise BadAccessError(
            f"the access mode is {asked.mode}, and {host} can only be reached from this machine",
            hint="name an address of this machine with --host",
        )
    if (remote or asked.mode is AccessMode.TUNNEL) and not asked.has_own_token:
        raise BadAccessError(
            "others could reach this server, and it has no token of yours",
            hint="give one with --token-file FILE (or --token)",
        )
    return AccessPlan(
        mode=asked.mode, host=host, port=port, advertise=advertise, callback_base=callback_base
    )


def _address(asked: AccessRequest) -> tuple[str, int]:
    host, port = DEFAULT_HOST, DEFAULT_PORT
    if asked.listen is not None:
        if asked.host is not None or asked.port is not None:
            raise BadAccessError(
                "--listen says it all", hint="leave out --host and --port, or leave out --listen"
            )
        host, port = split_address(asked.listen)
    host = asked.host if asked.host is not None else host
    port = asked.port if asked.port is not None else port
    if not 0 <= port <= 65_535:
        raise BadAccessError(f"{port} is not a port", hint="use 1 to 65535")
    return host.strip("[]"), port


def split_address(listen: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, or raise BadAccessError."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or len(port) > 5:
        raise BadAccessError(f"{listen!r} is not an address", hint="write it as 127.0.0.1:7878")
    return host, int(port)


def _public(url: str | None, where: str) -> str | None:
    if url is None:
        return None
    if not _is_plain_address(url):
        raise BadAccessError(
            f"{where} takes an address such as https://holon.example.org",
            hint="http or https, a host, no user and no query",
        )
    return url.rstrip("/")


def _is_plain_address(url: str) -> bool:
    # The parser passes over blanks and line breaks; in a trigger URL they would be there again.
    if not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is none
        return False
    extras = parts.query or parts.fragment or parts.username or parts.password
    return parts.scheme in _DEFAULT_PORTS and usable and not extras


def _advertised_names(url: str) -> set[str]:
    parts = urlsplit(url)
    assert parts.hostname is not None, "plan_access lets no other address through"
    name = _bracketed(parts.hostname)
    port = parts.port if parts.port is not None else _DEFAULT_PORTS[parts.scheme]
    names = {f"{name}:{port}"}
    return names | {name} if port == _DEFAULT_PORTS[parts.scheme] else names


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        raise BadAccessError(
            f"{host!r} is not an address of this machine", hint="give an IP address or localhost"
        ) from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
