# SPDX-License-Identifier: Apache-2.0
"""Storage that only Hadoop has a client for, as a file system of pyarrow on Hadoop's client in a Java process.

The file systems hold the process until the end of this one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, NoReturn

from spark_dstl.checkpoint.java.gateway import JvmOptions, acquire, unconverted
from spark_dstl.dependencies import needed

PURPOSE = "Storage that Hadoop has a client for"
# py4j sends each piece as a string.
_PIECE = 4 * 1024 * 1024

_ERRORS: dict[str, type[OSError]] = {
    "java.io.FileNotFoundException": FileNotFoundError,
    "java.nio.file.AccessDeniedException": PermissionError,
    "org.apache.hadoop.security.AccessControlException": PermissionError,
}

_SETTINGS = "HADOOP_CONF_DIR must name the directory of the cluster's core-site.xml and hdfs-site.xml"
# Words of Hadoop's clients, and what to do.
_WAYS_OUT = {
    "Client cannot authenticate via:": "log in with kinit",
    "GSS initiate failed": "log in with kinit",
    "SIMPLE authentication is not enabled": _SETTINGS,
    "UnknownHostException": f"if it is the name of a cluster, {_SETTINGS}",
}


def hadoop_files(uri: str, options: JvmOptions) -> Any:
    """Return the file system of a URI, which ends with its root. Raises `OSError` if Hadoop cannot open it."""
    filesystems = needed("pyarrow.fs", PURPOSE)
    java = acquire(options).tool("HadoopFiles")
    with storage_errors():
        files = java(uri, dict(options.conf))
    return filesystems.PyFileSystem(_handler(filesystems, files, uri))


def exclusive_creation(files: Any) -> Callable[[str, bytes], bool] | None:
    """Return a function that creates an object exclusively, as the log does; None for other file systems than Hadoop's.

    It takes the path and the content, returns whether it has created the object, and raises `OSError`.
    """
    if not isinstance(files, needed("pyarrow.fs", PURPOSE).PyFileSystem):
        return None
    create: Callable[[str, bytes], bool] = files.handler.create_exclusively
    return create


def _handler(filesystems: Any, files: Any, uri: str) -> Any:
    """Return the handler for pyarrow; pyarrow is optional and imported late."""
    arrow = needed("pyarrow", PURPOSE)

    class Handler(filesystems.FileSystemHandler):  # type: ignore[misc]
        def get_type_name(self) -> str:
            return f"hadoop:{uri}"

        def normalize_path(self, path: str) -> str:
            return path

        def get_file_info(self, paths: list[str]) -> list[Any]:
            with storage_errors():
                return [self._info(path, files.status(_relative(path))) for path in paths]

        def get_file_info_selector(self, selector: Any) -> list[Any]:
            with storage_errors():
                listed = files.list(_relative(selector.base_dir), selector.recursive)
            if listed is None:
                if selector.allow_not_found:
                    return []
                raise FileNotFoundError(selector.base_dir)
            # Only the last field, the name, may have tabs.
            lines = (line.split("\t", 3) for line in listed.split("\n") if line)
            return [self._info(f"/{name}", "\t".join(status)) for *status, name in lines]

        def _info(self, path: str, status: str | None) -> Any:
            if status is None:
                return filesystems.FileInfo(path, filesystems.FileType.NotFound)
            kind, size, millis = status.split("\t")
            if kind == "d":
                return filesystems.FileInfo(path, filesystems.FileType.Directory)
            written = datetime.fromtimestamp(int(millis) / 1000, timezone.utc)
            return filesystems.FileInfo(path, filesystems.FileType.File, mtime=written, size=int(size))

        def open_input_file(self, path: str) -> Any:
            with storage_errors():
                return arrow.PythonFile(_Reader(files.open(_relative(path))), mode="r")

        open_input_stream = open_input_file

        def open_output_stream(self, path: str, metadata: Any) -> Any:  # noqa: ARG002
            with storage_errors():
                return arrow.PythonFile(_Writer(files.create(_relative(path))), mode="w")

        def create_exclusively(self, path: str, content: bytes) -> bool:
            with storage_errors():
                return bool(files.createExclusively(_relative(path), content))

        def replace(self, path: str, content: bytes) -> None:
            with storage_errors():
                files.replace(_relative(path), content)

        def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002
            with storage_errors():
                files.makeDirectory(_relative(path))

        def delete_file(self, path: str) -> None:
            with storage_errors():
                if not files.delete(_relative(path)):
                    raise FileNotFoundError(path)

        # Hadoop deletes an empty directory like a file, and refuses others.
        delete_dir = delete_file

        def _refuse(self, *_: Any) -> NoReturn:
            raise NotImplementedError("this package does not use it")

        delete_dir_contents = delete_root_dir_contents = move = copy_file = open_append_stream = _refuse

    return Handler()


class _File(io.RawIOBase):
    """A file of Hadoop as a Python file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._at = 0

    def close(self) -> None:
        if not self.closed:
            super().close()
            with storage_errors():
                self._file.close()


class _Reader(_File):
    """A file for reading."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._size: int = file.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        end = self._size if size < 0 else min(self._size, self._at + size)
        pieces = []
        while self._at < end:
            with storage_errors():
                piece: bytes = self._file.read(self._at, min(_PIECE, end - self._at))
            self._at += len(piece)
            pieces.append(piece)
        return b"".join(pieces)


class _Writer(_File):
    """A file for writing. Without `close` it is missing or incomplete."""

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, content: Any, /) -> int:
        view = memoryview(content)
        for start in range(0, len(view), _PIECE):
            with storage_errors():
                self._file.write(bytes(view[start : start + _PIECE]))
        self._at += len(view)
        return len(view)


def _relative(path: str) -> str:
    return path.strip("/")


@contextmanager
def storage_errors() -> Iterator[None]:
    """Raise Java's exceptions as errors of files."""
    py4j = needed("py4j.protocol", PURPOSE)
    try:
        with unconverted():
            yield
    except py4j.Py4JJavaError as error:
        thrown = error.java_exception
        kind = thrown.getClass().getName()
        words = f"{kind.rpartition('.')[2]}: {thrown.getMessage()}"
        ways = [way for known, way in _WAYS_OUT.items() if known in words]
        raise _ERRORS.get(kind, OSError)("; ".join([words, *ways[:1]])) from error
    except py4j.Py4JError as error:
        raise OSError("the process with Hadoop's client, which reads this storage, does not answer") from error
