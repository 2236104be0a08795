# SPDX-License-Identifier: Apache-2.0
"""The storage that a probe writes to.

Names are relative to the probed place, and begin with the folder of the probe.
"""

from typing import Protocol

PURPOSE = "Probing this storage"


class Refused(Exception):
    """Storage rejected the request, which has no effect, now or later."""


class Unanswered(Exception):
    """The request ended without an answer: it may have taken effect, or may do so later."""


class ProbedStorage(Protocol):
    """A place that objects are written to. Each method makes one attempt, and raises `Refused` or `Unanswered`."""

    @property
    def shown(self) -> str:
        """The name of the place in messages."""

    @property
    def not_exclusive_because(self) -> str | None:
        """Why this client cannot create an object exclusively; None if it can."""

    def make_folder(self, folder: str) -> None:
        """Make a folder, where storage has folders; the place itself must exist."""

    def put(self, name: str, content: bytes) -> None:
        """Write an object, which appears as a whole."""

    def get(self, name: str) -> bytes | None:
        """Return an object; None if it does not exist."""

    def exists(self, name: str) -> bool:
        """Whether the object exists."""

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless one of that name exists; return whether it was written."""

    def objects(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder; none if the folder does not exist."""

    def folders(self) -> list[str]:
        """Return the names of the folders in the place."""

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""

    def delete_folder(self, folder: str) -> None:
        """Delete an empty folder, where storage has folders."""
