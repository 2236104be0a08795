# SPDX-License-Identifier: Apache-2.0
"""`CheckpointAccess`: the files of one checkpoint, as every operation on it reads them."""

from __future__ import annotations

from contextlib import suppress

from spark_dstl.checkpoint.java.gateway import Gateway, JvmOptions
from spark_dstl.checkpoint.java.hadoop import shared_gateway
from spark_dstl.checkpoint.locate import StorageOptions, locate
from spark_dstl.checkpoint.reading import EntryReader
from spark_dstl.checkpoint.storage import Progress, Readers, Storage, silent
from spark_dstl.checkpoint.survey import Survey, entries_of, look
from spark_dstl.errors import DamagedLog, UnsupportedLog


class CheckpointAccess:
    """One checkpoint: its storage, the threads that read it, one survey of it, and a Java process if one is needed."""

    def __init__(
        self,
        storage: Storage,
        query: str,
        base_path: str | None = None,
        options: StorageOptions | None = None,
        progress: Progress = silent,
        jvm: JvmOptions | None = None,
    ) -> None:
        self.storage = storage
        self.query = query
        self.progress = progress
        self.storage_options = options or StorageOptions()
        self.jvm_options = jvm or JvmOptions()
        self.readers = Readers(progress)
        self._base_path = base_path
        self._survey: Survey | None = None
        self._gateway: Gateway | None = None

    def close(self) -> None:
        """Stop the reader threads, and the Java process if there is one."""
        self.readers.close()
        if self._gateway is not None:
            self._gateway.close()
            self._gateway = None

    @property
    def path(self) -> str:
        """The path of the checkpoint."""
        return self.storage.place.shown

    def survey(self) -> Survey:
        """Return one survey of the checkpoint. The first call reads every commit entry, later calls read nothing."""
        if self._survey is None:
            self._survey = look(self.storage, self.readers)
        return self._survey

    def look_again(self) -> Survey:
        """Discard the survey, and make another."""
        self._survey = None
        return self.survey()

    def base(self, named: str | None) -> Storage:
        """Return where data files are, given the base path that the newest commit entry names."""
        wanted = self._base_path or named
        if wanted is None:
            return Storage(self.storage.place.beneath("dstl"))
        return Storage(locate(wanted, self.storage_options))

    def named_base(self) -> str | None:
        """Return the base path that was given or that the newest commit entry names; None if it is `dstl/`."""
        return self._base_path or self._newest_named_base()

    def newest_base(self) -> Storage:
        """Return where data files are; reads the newest commit entries only."""
        return self.base(self._newest_named_base())

    def _newest_named_base(self) -> str | None:
        reader = EntryReader(self.storage)
        for batch in reversed(entries_of(self.storage)):
            with suppress(DamagedLog, UnsupportedLog):
                entry = reader.read(batch)
                if entry is not None and entry.index is not None:
                    return entry.index.base
        return None

    def gateway(self) -> Gateway:
        """Return the Java process, started at the first call; the process that serves the storage, if there is one."""
        shared = shared_gateway(self.jvm_options)
        if shared is not None:
            return shared
        if self._gateway is None:
            self._gateway = Gateway(self.jvm_options)
        return self._gateway
