# SPDX-License-Identifier: Apache-2.0
"""`CheckpointAccess`: the files of one checkpoint, as every operation on it reads them."""

from __future__ import annotations

from contextlib import suppress

from spark_dstl.checkpoint.java.gateway import Gateway, acquire, release
from spark_dstl.checkpoint.locate import StorageOptions, jvm_options, locate
from spark_dstl.checkpoint.reading import read_entry
from spark_dstl.checkpoint.storage import Progress, Readers, Storage
from spark_dstl.checkpoint.survey import Survey, entries_of, look
from spark_dstl.errors import DamagedLog, UnsupportedLog


class CheckpointAccess:
    """One checkpoint: its storage, the threads that read it, one survey of it, and a Java process if one is needed."""

    def __init__(
        self, storage: Storage, query: str, base_path: str | None, options: StorageOptions, progress: Progress
    ) -> None:
        self.storage = storage
        self.query = query
        self.progress = progress
        self.storage_options = options
        self.readers = Readers(progress)
        self._base_path = base_path
        self._survey: Survey | None = None
        self._gateway: Gateway | None = None

    def close(self) -> None:
        """Stop the reader threads, and the Java process if no other checkpoint uses it."""
        self.readers.close()
        if self._gateway is not None:
            release(self._gateway)
            self._gateway = None

    @property
    def path(self) -> str:
        """The path of the checkpoint."""
        return self.storage.place.shown

    def survey(self) -> Survey:
        """Return the last survey of the checkpoint, for the parts of one operation. The first call makes it."""
        if self._survey is None:
            self._survey = look(self.storage, self.readers)
        return self._survey

    def look_again(self) -> Survey:
        """Make a survey, which reads every commit entry: each operation begins with one, because the query may run."""
        self._survey = None
        return self.survey()

    def newest_base(self) -> Storage:
        """Return where data files are; reads the newest commit entries only."""
        return self.base(self.named_base())

    def base(self, named: str | None) -> Storage:
        """Return where data files are, given the base path that the newest commit entry names."""
        wanted = self._base_path or named
        if wanted is None:
            return Storage(self.storage.place.beneath("dstl"))
        return Storage(locate(wanted, self.storage_options))

    def named_base(self) -> str | None:
        """Return the base path that was given or that the newest commit entry names; None if it is `dstl/`."""
        if self._base_path:
            return self._base_path
        for batch in reversed(entries_of(self.storage)):
            with suppress(DamagedLog, UnsupportedLog):
                entry = read_entry(self.storage, batch)
                if entry is not None and entry.index is not None:
                    return entry.index.base
        return None

    def gateway(self) -> Gateway:
        """Return the Java process, which open checkpoints with the same options share; the first call may start it.

        After its process has ended, because memory was short for example, the next call starts another one.
        """
        if self._gateway is not None and not self._gateway.is_running:
            release(self._gateway)
            self._gateway = None
        if self._gateway is None:
            self._gateway = acquire(jvm_options(self.storage_options))
        return self._gateway
