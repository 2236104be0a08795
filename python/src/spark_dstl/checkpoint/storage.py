# SPDX-License-Identifier: Apache-2.0
"""Lists, reads, creates and deletes objects below one directory.

(On S3 pyarrow leaves an empty object `directory/` after a deletion, as Hadoop does for directories.)

Names are relative to the directory and cannot lead out of it. A missing object is None or is left out of a listing, and
not an error, because queries delete objects.
"""

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from threading import Event
from typing import Any, TypeVar

from spark_dstl.checkpoint.format.logfile import Tail
from spark_dstl.checkpoint.locate import PURPOSE, Place
from spark_dstl.dependencies import needed
from spark_dstl.errors import UnreadableStorage

PIECE = 4 * 1024 * 1024
# Requests to storage.
AT_ONCE = 16
_LISTINGS = 5
T = TypeVar("T")
R = TypeVar("R")
# Is called with a description, the count so far and the total.
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _of: int) -> None:
    """Ignore progress."""


class TooLarge(UnreadableStorage):
    """An object has more bytes than are read at once."""


@dataclass(frozen=True)
class StoredObject:
    """An object: its name relative to the directory, its bytes, and its last write by the storage's clock."""

    name: str
    size: int
    modified: datetime | None

    @property
    def last_name(self) -> str:
        """The name without the directories."""
        return self.name.rsplit("/", 1)[-1]


class Storage:
    """The objects below a directory."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def shown(self, name: str) -> str:
        """Return the name of the object in messages."""
        return f"{self.place.shown.rstrip('/')}/{name}"

    def objects(self, directory: str = "", recursive: bool = False) -> list[StoredObject]:
        """Return the objects in a directory, sorted by name; none if the directory is missing."""
        start = len(self._path("").rstrip("/")) + 1
        found = self._listed(directory, recursive)
        objects = [StoredObject(info.path[start:], info.size, info.mtime) for info in found if info.is_file]
        return sorted(objects, key=lambda stored: stored.name)

    def directories(self, directory: str = "") -> list[str]:
        """Return the names of the directories in a directory. On GCS, each object below is listed."""
        start = len(self._path(directory).rstrip("/")) + 1
        found = self._listed(directory, self.place.lists_marked_only)
        below = ((info, *info.path[start:].partition("/")) for info in found)
        kind = needed("pyarrow.fs", PURPOSE).FileType.Directory
        return sorted({name for info, name, deeper, _ in below if deeper or info.type == kind})

    def is_empty(self) -> bool:
        """Whether there is nothing below the directory, or no directory."""
        return not self._listed("", self.place.lists_marked_only)

    def _listed(self, directory: str, recursive: bool) -> list[Any]:
        select = needed("pyarrow.fs", PURPOSE).FileSelector
        selector = select(self._path(directory), recursive=recursive, allow_not_found=True)
        with self._errors(directory or ".", "listed"):
            for _ in range(_LISTINGS - 1):
                # A subdirectory may be deleted during the listing.
                with suppress(FileNotFoundError):
                    return list(self.place.files.get_file_info(selector))
            return list(self.place.files.get_file_info(selector))

    def tail(self, name: str, length: int) -> Tail | None:
        """Return the last bytes of an object; None if it is missing."""
        return self._open(name, lambda file, size: Tail(_read(file, max(size - length, 0), min(length, size)), size))

    def range(self, name: str, offset: int, length: int) -> bytes | None:
        """Return a range of an object, up to its end; None if it is missing."""
        return self._open(name, lambda file, size: _read(file, offset, min(length, max(size - offset, 0))))

    def pieces(self, name: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield a range of an object piece by piece, up to its end; nothing if it is missing."""
        end = offset + length
        while offset < end and (piece := self.range(name, offset, min(PIECE, end - offset))):
            offset += len(piece)
            yield piece

    def read(self, name: str, limit: int) -> bytes | None:
        """Return an object of at most `limit` bytes; None if it is missing."""

        def whole(file: Any, size: int) -> bytes:
            if size > limit:
                raise TooLarge(f"{self.shown(name)} has {size} bytes, more than the {limit} that it may have")
            return _read(file, 0, size)

        return self._open(name, whole)

    def size(self, name: str) -> int | None:
        """Return the size of an object; None if it is missing."""
        found = self.look(name)
        return None if found is None else found.size

    def look(self, name: str) -> StoredObject | None:
        """Return an object's size and time; None if it is missing. One request on S3."""
        if self.place.files.type_name == "s3":
            # For a missing object pyarrow asks for a directory of the name as well, unless it opens the object.
            return self._open(name, lambda file, size: StoredObject(name, size, _modified(file)))
        with self._errors(name, "looked at"):
            info = self.place.files.get_file_info(self._path(name))
        return StoredObject(name, int(info.size), info.mtime) if info.is_file else None

    def create(self, name: str, content: bytes) -> None:
        """Create an object whose name no other writer uses. After an error it has no object that was cut off."""
        path, files = self._path(name), self.place.files
        with self._errors(name, "created"):
            if files.type_name in ("s3", "gcs"):
                # They need no directories, and a failed request leaves what was there.
                _write(files, path, content)
                return
            files.create_dir(path.rpartition("/")[0], recursive=True)
            with _deleted_after_error(files, path):
                _write(files, path, content)

    def replace(self, name: str, content: bytes) -> None:
        """Create or replace an object, which has its old content or all of the new, also if this process is killed.

        Deletes the checksum that Hadoop keeps of an earlier one beside a local file.
        """
        files, path = self.place.files, self._path(name)
        if files.type_name.startswith("py::hadoop:"):
            with self._errors(name, "created"):
                files.handler.replace(path, content)
        elif files.type_name != "local":
            # Object storage has no object whose write has not ended.
            self.create(name, content)
        else:
            directory, _, last = name.rpartition("/")
            self.delete(f"{directory}/.{last}.crc")
            unfinished = f"{directory}/.{last}.{uuid.uuid4()}.tmp"
            self.create(unfinished, content)
            temporary = self._path(unfinished)
            with self._errors(name, "created"), _deleted_after_error(files, temporary):
                files.move(temporary, path)

    def delete(self, name: str) -> bool:
        """Delete an object; return whether it existed."""
        with self._errors(name, "deleted"):
            try:
                self.place.files.delete_file(self._path(name))
            except FileNotFoundError:
                return False
        return True

    def _path(self, name: str) -> str:
        parts = name.split("/") if name else []
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise UnreadableStorage(f"{name!r} is not the name of an object below {self.place.shown}")
        return "/".join([self.place.path.rstrip("/"), *parts])

    def _open(self, name: str, use: Callable[[Any, int], R]) -> R | None:
        with self._errors(name, "read"):
            try:
                with self.place.files.open_input_file(self._path(name)) as file:
                    return use(file, file.size())
            except FileNotFoundError:
                return None

    @contextmanager
    def _errors(self, name: str, done: str) -> Iterator[None]:
        arrow = needed("pyarrow", PURPOSE)
        try:
            yield
        except UnreadableStorage:
            raise
        except (OSError, arrow.ArrowException) as error:
            needs = {"created": "write", "deleted": "delete"}.get(done, "list and read")
            raise UnreadableStorage(
                f"{self.shown(name)} could not be {done}: {error}. Check the path, the permission to {needs} there, "
                "and that storage can be reached"
            ) from error


@contextmanager
def _deleted_after_error(files: Any, path: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            files.delete_file(path)
        raise


def _write(files: Any, path: str, content: bytes) -> None:
    with files.open_output_stream(path) as stream:
        stream.write(content)


def _modified(file: Any) -> datetime | None:
    """Return the time of an open object of S3."""
    time = file.metadata().get("Last-Modified")
    return datetime.fromisoformat(time.decode().replace("Z", "+00:00")) if time else None


def _read(file: Any, offset: int, length: int) -> bytes:
    # Some storage returns fewer bytes than requested before the end.
    pieces = []
    while length > 0:
        piece: bytes = file.read_at(length, offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Readers:
    """Threads that read ahead while earlier results are processed."""

    def __init__(self, progress: Progress = silent, threads: int = AT_ONCE) -> None:
        self._progress = progress
        self._ahead = 2 * threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="dstl-read")

    def each(self, question: Callable[[T], R], about: Iterable[T], what: str | None = None) -> Iterator[tuple[T, R]]:
        """Yield each item with its result, in order; memory has only a few results ahead of the caller.

        With `what`, which needs items that can be counted, report progress.
        """
        items = iter(about)
        waiting: deque[tuple[T, Future[R]]] = deque()
        try:
            for done in count(1):
                ahead = islice(items, self._ahead - len(waiting))
                waiting.extend((item, self._pool.submit(question, item)) for item in ahead)
                if not waiting:
                    return
                first, answer = waiting.popleft()
                result = answer.result()
                if what is not None and isinstance(about, Sized):
                    self._progress(what, done, len(about))
                yield first, result
        finally:
            for _, answer in waiting:
                answer.cancel()

    def close(self) -> None:
        """Stop the threads and cancel the waiting reads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def at_once(number: int, work: Callable[[T], R], items: Sequence[T], done: Callable[[int], None]) -> list[R]:
    """Do some work for several items at once; return the results in order of the items.

    `done` is called with the number of items that are done. Unlike reads, work that changes something must not continue
    in the background after an error or an interrupt: it is raised when the work that has begun is done, and the rest
    is left out.
    """
    results: list[R] = []
    over = Event()

    def unless_over(item: T) -> list[R]:
        try:
            return [] if over.is_set() else [work(item)]
        except BaseException:
            over.set()
            raise

    with ThreadPoolExecutor(number, thread_name_prefix="dstl-work") as pool:
        try:
            for answer in [pool.submit(unless_over, item) for item in items]:
                results += answer.result()
                done(len(results))
        finally:
            # Without it the pool would do all submitted work after an interrupt.
            over.set()
    return results


def caught(question: Callable[[T], R], *errors: type[Exception]) -> Callable[[T], R | Exception]:
    """Return a function that returns these errors of the function."""

    def asked(item: T) -> R | Exception:
        try:
            return question(item)
        except errors as error:
            return error

    return asked
