"""Directories as workspaces: what a path leads to, and the repository around it.

Contract: `find` takes an absolute path and follows every symlink. It returns the directory by its
real name, with the top of the git working tree it lies in and, where that is a linked worktree, the
top of the repository's main one; or else why there is no place to work in. It changes nothing and
never raises for what is on the disk.
"""

from typing import Protocol

from holon.model.workspace import FoundPlace, PathProblem


class WorkspaceFinder(Protocol):
    """Looks at directories somebody wants to work in."""

    async def find(self, path: str) -> FoundPlace | PathProblem:
        """Return what a path leads to."""
        ...
