"""The target of an export or a conversion."""

from __future__ import annotations

from collections.abc import Iterable

from spark_dstl.checkpoint.locate import PURPOSE, Place
from spark_dstl.checkpoint.storage import Storage
from spark_dstl.dependencies import needed
from spark_dstl.errors import UnreadableStorage

_PIECE = 4 * 1024 * 1024


class Target(Storage):
    """A directory that objects are written to."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._made: set[str] = set()

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write or replace an object; an interrupted write may leave one that is too short."""
        arrow = needed("pyarrow", PURPOSE)
        path = self._path(name)
        try:
            directory = path.rpartition("/")[0]
            if directory not in self._made:
                self.place.files.create_dir(directory, recursive=True)
                self._made.add(directory)
            with self.place.files.open_output_stream(path) as out:
                for piece in pieces:
                    out.write(piece)
        except (OSError, arrow.ArrowException) as error:
            raise UnreadableStorage(
                f"{self.shown(name)} could not be written: {error}. Check the path, the permission to write there, and "
                "that storage can be reached; then begin again: what is there already is not written twice"
            ) from error

    def has(self, name: str, pieces: Iterable[bytes]) -> bool:
        """Whether the object exists and has exactly these bytes."""
        offset = 0
        for piece in pieces:
            for start in range(0, len(piece), _PIECE):
                wanted = piece[start : start + _PIECE]
                if self.range(name, offset, len(wanted)) != wanted:
                    return False
                offset += len(wanted)
        return self.size(name) == offset
