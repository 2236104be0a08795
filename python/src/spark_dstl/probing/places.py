# SPDX-License-Identifier: Apache-2.0
"""The storage at a path: local disks, and storage that pyarrow or Hadoop has a client for. S3 is in another module."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spark_dstl.checkpoint.java.hadoop import exclusive_creation
from spark_dstl.checkpoint.locate import Place, StorageOptions, locate, scheme_of
from spark_dstl.dependencies import PROBE, needed
from spark_dstl.probing.s3 import S3Objects
from spark_dstl.probing.storage import PURPOSE, ProbedStorage, Refused, Unanswered


def storage_at(place: str, options: StorageOptions, timeout_seconds: float) -> ProbedStorage:
    """Return the storage of a local path or a URI. `timeout_seconds` limits a request of S3 alone."""
    scheme, rest = scheme_of(place)
    if scheme in ("s3", "s3a", "s3n"):
        return S3Objects(f"{scheme}://{rest.strip('/')}", rest.strip("/"), options, timeout_seconds)
    needed("pyarrow", PURPOSE, PROBE)
    located = locate(place, options)
    if scheme in (None, "file"):
        return LocalFiles(located)
    create = exclusive_creation(located.files)
    return ArrowFiles(located) if create is None else HadoopFiles(located, create)


_WITHOUT_CREATE = (
    "pyarrow, the client for this storage, has no exclusive create; a query tests it at its start, with Hadoop's "
    "client, and warns if storage has none"
)


class ArrowFiles:
    """Objects of a file system of pyarrow, such as GCS and ABFS."""

    not_exclusive_because: str | None = _WITHOUT_CREATE

    def __init__(self, place: Place) -> None:
        self.shown = place.shown
        self._place = place

    def make_folder(self, folder: str) -> None:
        with self._errors():
            # A directory above that no object marks does not exist for a client that lists marked ones only.
            self._place.files.create_dir(self._path(folder), recursive=self._place.lists_marked_only)

    def put(self, name: str, content: bytes) -> None:
        with self._errors(), self._place.files.open_output_stream(self._path(name), compression=None) as stream:
            stream.write(content)

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        with self._errors(), suppress(FileNotFoundError), self._place.files.open_input_stream(path, None) as stream:
            return bytes(stream.read())
        return None

    def exists(self, name: str) -> bool:
        with self._errors():
            return bool(self._place.files.get_file_info(self._path(name)).is_file)

    def create(self, name: str, content: bytes) -> bool:  # noqa: ARG002
        raise Refused(_WITHOUT_CREATE)

    def objects(self, folder: str) -> list[str]:
        return sorted(f"{folder}/{info.base_name}" for info in self._listed(self._path(folder)) if info.is_file)

    def folders(self) -> list[str]:
        directory = needed("pyarrow.fs", PURPOSE, PROBE).FileType.Directory
        found = self._listed(self._place.path)
        return sorted(info.base_name for info in found if info.type == directory)

    def delete(self, name: str) -> None:
        with self._errors(), suppress(FileNotFoundError):
            self._place.files.delete_file(self._path(name))

    def delete_folder(self, folder: str) -> None:
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
    """Objects on storage that Hadoop has a client for, such as HDFS. `create` is the one that the log uses."""

    not_exclusive_because = None

    def __init__(self, place: Place, create: Callable[[str, bytes], bool]) -> None:
        super().__init__(place)
        self._create = create

    def create(self, name: str, content: bytes) -> bool:
        with self._errors():
            return self._create(self._path(name), content)


class LocalFiles(ArrowFiles):
    """Files of a local disk, written as the log writes them: under a temporary name, then linked or renamed."""

    not_exclusive_because = None

    def put(self, name: str, content: bytes) -> None:
        with self._errors(), self._written(name, content) as hidden:
            hidden.replace(self._path(name))

    def create(self, name: str, content: bytes) -> bool:
        with self._errors(), self._written(name, content) as hidden, suppress(FileExistsError):
            os.link(hidden, self._path(name))
            return True
        return False

    def objects(self, folder: str) -> list[str]:
        # With folders, which no probe makes there: they are kept.
        with self._errors(), suppress(FileNotFoundError):
            return sorted(f"{folder}/{path.name}" for path in Path(self._path(folder)).iterdir())
        return []

    def folders(self) -> list[str]:
        # Unlike on other storage, a missing place is an error.
        with self._errors():
            return sorted(path.name for path in Path(self._place.path).iterdir() if path.is_dir())

    @contextmanager
    def _written(self, name: str, content: bytes) -> Iterator[Path]:
        path = Path(self._path(name))
        # Concurrent creates of one name need separate files.
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
