# SPDX-License-Identifier: Apache-2.0
"""Which storage a path names: local disks and what pyarrow or Hadoop reaches are here, S3 is a separate module."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_dstl.checkpoint.java.hadoop import exclusive_creation
from spark_dstl.checkpoint.locate import Place, StorageOptions, locate, scheme_of
from spark_dstl.dependencies import PROBE, needed
from spark_dstl.probing.s3 import S3Objects
from spark_dstl.probing.storage import PURPOSE, ProbedStorage, Refused, Unanswered


def storage_at(place: str, options: StorageOptions, timeout_seconds: float) -> ProbedStorage:
    """Return the storage of a local path, or of a URI of S3 or of what pyarrow or Hadoop knows besides.

    `timeout_seconds` is how long a request of S3 may be silent; other clients use their own limits.
    """
    scheme, rest = scheme_of(place)
    if scheme is None:
        return LocalFiles(Path(place).absolute())
    if scheme == "file":
        return LocalFiles(Path("/" + rest.lstrip("/")))
    if scheme in ("s3", "s3a", "s3n"):
        return S3Objects(f"{scheme}://{rest.strip('/')}", rest.strip("/"), options, timeout_seconds)
    located = locate(place, options)
    create = exclusive_creation(located.files)
    return ArrowFiles(located) if create is None else HadoopFiles(located, create)


class LocalFiles:
    """Files of a local disk, written as the log writes them: under a temporary name, then linked or renamed."""

    not_exclusive_because = None

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def shown(self) -> str:
        """The path."""
        return str(self._directory)

    def make_folder(self, folder: str) -> None:
        """Make a directory."""
        with self._errors():
            (self._directory / folder).mkdir()

    def put(self, name: str, content: bytes) -> None:
        """Write a file beside it and rename that."""
        with self._errors(), self._written(name, content) as hidden:
            hidden.replace(self._directory / name)

    def get(self, name: str) -> bytes | None:
        """Read a file."""
        with self._errors():
            try:
                return (self._directory / name).read_bytes()
            except FileNotFoundError:
                return None

    def exists(self, name: str) -> bool:
        """Look at the directory's entry."""
        with self._errors():
            return (self._directory / name).exists()

    def create(self, name: str, content: bytes) -> bool:
        """Write a file beside it and link that, which one of several can."""
        with self._errors(), self._written(name, content) as hidden:
            try:
                os.link(hidden, self._directory / name)
            except FileExistsError:
                return False
            return True

    def objects(self, folder: str) -> list[str]:
        """Return the files in a directory."""
        with self._errors():
            try:
                return sorted(f"{folder}/{path.name}" for path in (self._directory / folder).iterdir())
            except FileNotFoundError:
                return []

    def folders(self) -> list[str]:
        """Return the directories in the place."""
        with self._errors():
            return sorted(path.name for path in self._directory.iterdir() if path.is_dir())

    def delete(self, name: str) -> None:
        """Delete a file."""
        with self._errors():
            (self._directory / name).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete an empty directory."""
        with self._errors():
            (self._directory / folder).rmdir()

    @contextmanager
    def _written(self, name: str, content: bytes) -> Iterator[Path]:
        path = self._directory / name
        # Of several that create one name at once each needs a separate file.
        hidden = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        hidden.write_bytes(content)
        try:
            yield hidden
        finally:
            hidden.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Refused(str(error)) from error


_NOBODY_CAN_ASK = (
    "pyarrow, which reaches this storage, cannot ask for it; a query tries it at its start, through Hadoop's file "
    "system, and warns"
)


class ArrowFiles:
    """Objects of a file system of pyarrow, such as GCS and ABFS."""

    not_exclusive_because: str | None = _NOBODY_CAN_ASK

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def shown(self) -> str:
        """The URI."""
        return self._place.shown

    def make_folder(self, folder: str) -> None:
        """Make a directory, or what stands for one."""
        with self._errors():
            self._place.files.create_dir(self._path(folder), recursive=False)

    def put(self, name: str, content: bytes) -> None:
        """Write an object."""
        with self._errors(), self._place.files.open_output_stream(self._path(name), compression=None) as stream:
            stream.write(content)

    def get(self, name: str) -> bytes | None:
        """Read an object."""
        with self._errors():
            try:
                with self._place.files.open_input_stream(self._path(name), compression=None) as stream:
                    content: bytes = stream.read()
                    return content
            except FileNotFoundError:
                return None

    def exists(self, name: str) -> bool:
        """Ask for its status."""
        with self._errors():
            return bool(self._place.files.get_file_info(self._path(name)).is_file)

    def create(self, name: str, content: bytes) -> bool:  # noqa: ARG002
        """No client supports it."""
        raise Refused(_NOBODY_CAN_ASK)

    def objects(self, folder: str) -> list[str]:
        """List a directory."""
        return sorted(f"{folder}/{info.base_name}" for info in self._listed(self._path(folder)) if info.is_file)

    def folders(self) -> list[str]:
        """List the directories in the place."""
        directory = needed("pyarrow.fs", PURPOSE, PROBE).FileType.Directory
        found = self._listed(self._place.path)
        return sorted(info.base_name for info in found if info.type == directory)

    def delete(self, name: str) -> None:
        """Delete an object."""
        with self._errors():
            try:
                self._place.files.delete_file(self._path(name))
            except FileNotFoundError:
                return

    def delete_folder(self, folder: str) -> None:
        """Delete a directory."""
        with self._errors():
            self._place.files.delete_dir(self._path(folder))

    def _path(self, name: str) -> str:
        return f"{self._place.path.rstrip('/')}/{name}"

    def _listed(self, path: str) -> list[Any]:
        selector = needed("pyarrow.fs", PURPOSE, PROBE).FileSelector(path, allow_not_found=True)
        with self._errors():
            found: list[Any] = self._place.files.get_file_info(selector)
        return found

    @contextmanager
    def _errors(self) -> Iterator[None]:
        arrow = needed("pyarrow", PURPOSE, PROBE)
        try:
            yield
        except (FileNotFoundError, FileExistsError, PermissionError) as error:
            raise Refused(str(error)) from error
        except (OSError, arrow.ArrowException) as error:
            raise Unanswered(str(error)) from error


class HadoopFiles(ArrowFiles):
    """Objects on storage that Hadoop has a client for, such as HDFS; created as the log creates commit entries."""

    not_exclusive_because = None

    def __init__(self, place: Place, create: Callable[[str, bytes], bool]) -> None:
        """`create` creates an object unless there is one, and says whether it did."""
        super().__init__(place)
        self._create = create

    def create(self, name: str, content: bytes) -> bool:
        """Ask the file system for it."""
        with self._errors():
            return self._create(self._path(name), content)
