"""Archives as GitHub packs them, archives as it never would, and a server that hands them out."""

import gzip
import io
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOP = "repo-main"


def member(
    name: str,
    content: bytes = b"x",
    *,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    link: str = "",
) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of an archive, as wrong as a test wants it."""
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """The members, gzipped, with the commit where GitHub puts it."""
    out = io.BytesIO()
    headers = {"comment": COMMIT}
    with tarfile.open(
        fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers=headers
    ) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content[: info.size]))
    return out.getvalue()


def repository(files: Mapping[str, str | bytes]) -> bytes:
    """An honest repository."""
    members = [member(TOP, kind=tarfile.DIRTYPE, mode=0o755)]
    for name, text in files.items():
        content = text if isinstance(text, bytes) else text.encode()
        members.append(member(f"{TOP}/{name}", content))
    return packed(*members)


def raw_header(name: str, *, size: int, kind: bytes = b"0") -> bytes:
    """One header whose claims nobody keeps."""
    head = bytearray(512)
    head[: len(name)] = name.encode()
    head[100:108] = b"0000644\0"
    head[124:136] = f"{size:011o}".encode() + b"\0"
    head[156:157] = kind
    head[257:265] = b"ustar\x0000"
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}".encode() + b"\0 "
    return bytes(head)


def gzipped(*parts: bytes) -> bytes:
    """Bytes that need not be an archive."""
    return gzip.compress(b"".join(parts), compresslevel=1)


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def serving(answer: Callable[[str], Answer]) -> Iterator[tuple[str, list[str]]]:
    """A server on this machine; yields its address and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def serving_repository(
    files: Mapping[str, str | bytes],
) -> AbstractContextManager[tuple[str, list[str]]]:
    """A server with one repository at every address."""
    body = repository(files)
    return serving(lambda path: (200, {}, body))
