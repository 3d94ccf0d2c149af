"""Fetch a directory of a GitHub repository at a ref.

Owns:  fetching a repository's archive over HTTPS and extracting one directory of it.
Rule 1: only the configured server is contacted, also after a redirect. Plain http is allowed for a
        server on this machine only.
Rule 2: a download is bounded in bytes and time, and carries no credential.
Rule 3: a failure leaves at most files in the caller's scratch directory.
"""

import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

import anyio
import anyio.to_thread

from holon.adapters.files.new_tree import BadTreeError
from holon.model import limits
from holon.model.agents import GITHUB_ARCHIVES, GithubTree
from holon.model.errors import BadInputError
from holon.model.guidance import GithubSkillRef
from holon.ports.agents import SourceUnreachableError

if TYPE_CHECKING:
    import httpx2

_DEFAULT_REF: Final = "HEAD"
_ARCHIVE: Final = "archive.tar.gz"
_TIMEOUT_S: Final = limits.ARCHIVE_FETCH_MS_MAX / limits.SECOND_MS
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")


class BadBaseError(BadInputError):
    """The address archives are fetched from cannot be used."""

    code = "bad_setting"


class GithubTrees:
    """Repositories, as one server hands out their archives."""

    def __init__(self, base: str = GITHUB_ARCHIVES) -> None:
        self._base = base.rstrip("/")

    async def fetch_tree(self, tree: GithubTree, into: Path, *, scratch: Path) -> str | None:
        """Extract a directory of a repository into an empty one; return the commit if known."""
        archive = await self._archive(tree.owner, tree.repo, tree.ref, scratch)
        return await anyio.to_thread.run_sync(_extracted, archive, tree.path, into)

    async def fetch_skill(self, ref: GithubSkillRef, into: Path, *, scratch: Path) -> str | None:
        """Put a skill of a repository into an empty directory; return the commit if known."""
        from holon.adapters.files.archives import skill_folder

        archive = await self._archive(ref.owner, ref.repo, _DEFAULT_REF, scratch)
        folder = await anyio.to_thread.run_sync(skill_folder, archive, ref)
        return await anyio.to_thread.run_sync(_extracted, archive, folder, into)

    async def _archive(self, owner: str, repo: str, ref: str, scratch: Path) -> Path:
        _require_safe(self._base)
        target = scratch / _ARCHIVE
        with anyio.move_on_after(_TIMEOUT_S) as patience:
            await self._download(f"{self._base}/{owner}/{repo}/tar.gz/{ref}", target)
        if patience.cancelled_caught:
            raise SourceUnreachableError(f"fetching {owner}/{repo} took too long")
        return target

    async def _download(self, url: str, target: Path) -> None:
        import httpx2

        from holon.adapters.providers.http.remote_client import LIBRARY_ERRORS

        direct = dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]"))
        try:
            async with httpx2.AsyncClient(
                follow_redirects=False, mounts=direct, timeout=_TIMEOUT_S
            ) as client:
                for _ in range(limits.ARCHIVE_REDIRECTS_COUNT_MAX + 1):
                    redirect = await _one_answer(client, url, target)
                    if redirect is None:
                        return
                    url = self._same_server(url, redirect)
        except LIBRARY_ERRORS as error:
            raise SourceUnreachableError(
                f"{_origin(self._base)} cannot be reached: {type(error).__name__}"
            ) from error
        raise SourceUnreachableError(f"{_origin(self._base)} redirects again and again")

    def _same_server(self, url: str, redirect: str) -> str:
        try:
            target = urljoin(url, redirect)
            is_same = _origin(target) == _origin(self._base) and "@" not in urlsplit(target).netloc
        except ValueError:
            is_same = False
        if not is_same:
            raise SourceUnreachableError(
                f"{_origin(self._base)} redirects to another server, which is not followed",
                hint="check the address and the setting templates.github_base",
            )
        return target


async def _one_answer(client: "httpx2.AsyncClient", url: str, target: Path) -> str | None:
    """Write an answer's body down; return where it sends us instead, if it does."""
    async with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer:
        if answer.status_code in _REDIRECTS:
            return answer.headers.get("location", "")
        if answer.status_code == 404:
            raise BadTreeError("there is no such repository, or it has no such ref")
        if answer.status_code != 200:
            raise SourceUnreachableError(f"{_origin(url)} answered with {answer.status_code}")
        count = 0
        async with await anyio.open_file(target, "wb") as file:
            async for piece in answer.aiter_raw():
                count += len(piece)
                if count > limits.ARCHIVE_BYTES_MAX:
                    raise BadTreeError(
                        f"the repository's archive has more than {limits.ARCHIVE_BYTES_MAX} bytes"
                    )
                await file.write(piece)
    return None


def _extracted(archive: Path, folder: str, into: Path) -> str | None:
    from holon.adapters.files.archives import extract_folder

    comment = extract_folder(archive, folder, into).comment
    return comment if comment is not None and _COMMIT.fullmatch(comment) else None


def _require_safe(base: str) -> None:
    parts = urlsplit(base)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname or "")):
        return
    raise BadBaseError(
        "templates.github_base is neither https nor a server on this machine",
        hint=f"holon config set templates.github_base {GITHUB_ARCHIVES}",
    )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _origin(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"
