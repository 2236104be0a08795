# SPDX-License-Identifier: Apache-2.0
"""Storage as a probe needs it: one attempt at one request, which is answered, refused, or not answered.

Names are relative to the place that is probed, and all begin with the probe's own folder.
"""

from typing import Protocol

PURPOSE = "Probing this storage"


class Refused(Exception):
    """Storage's own answer is no: the request has had no effect and never will."""


class Unanswered(Exception):
    """The request ended without an answer: what it asked for may have been done, or may be done yet."""


class ProbedStorage(Protocol):
    """A place that objects are written to. Each method is one attempt, and raises `Refused` or `Unanswered`."""

    @property
    def shown(self) -> str:
        """What messages call the place."""

    @property
    def not_exclusive_because(self) -> str | None:
        """Why this client cannot create an object exclusively; None if it can."""

    def make_folder(self, folder: str) -> None:
        """Make a folder, where there are any; the place itself must be there."""

    def put(self, name: str, content: bytes) -> None:
        """Write an object, which appears as a whole."""

    def get(self, name: str) -> bytes | None:
        """Return an object; None if it is not there."""

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of that name; says whether it was written."""

    def objects(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder; none if there is no such folder."""

    def folders(self) -> list[str]:
        """Return the names of the folders in the place."""

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no error."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder whose objects are deleted, on storage where folders are objects."""
