# SPDX-License-Identifier: Apache-2.0
"""The errors of this package."""


class DstlError(Exception):
    """The base of all errors of this package."""


class InvalidOption(DstlError, ValueError):
    """An option has an invalid value; the message names the option, the value and the allowed values."""


class UnsupportedSpark(DstlError, RuntimeError):
    """Spark is missing, or this release does not support it; the message names the found version and its place."""


class JarNotFound(DstlError, FileNotFoundError):
    """The jar is missing; the message names its path."""


class InvalidProgress(DstlError, ValueError):
    """The input is not the progress of a streaming query; the message names its place and quotes its beginning."""


class MissingPackage(DstlError, ImportError):
    """An optional Python package is not installed; the message has the command that installs it."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f'{purpose} needs the package {package}, which is not installed: pip install "spark-dstl[{extra}]"'
        )


class NotWatchable(DstlError, RuntimeError):
    """The file or address to watch cannot be read, or is not one of a query; the message names it."""


class JarNotLoaded(DstlError, RuntimeError):
    """The running Spark was started without the jar, or with the jar of another release."""


class CheckpointNotFound(DstlError, FileNotFoundError):
    """The path has no checkpoint of a query; the message names the missing object."""


class UnreadableStorage(DstlError, OSError):
    """Storage did not answer, or rejected the request; the message names the place and has the answer."""


class DamagedLog(DstlError):
    """A stored object is damaged. Nothing of it is used.

    `file` and `offset` (in bytes) are the place, `damage` the description.
    """

    def __init__(self, file: str, offset: int, damage: str) -> None:
        super().__init__(
            f"{file} is damaged at offset {offset}: {damage}. Restore the object from a backup or an older object "
            "version; `dstl verify` says which batch is undamaged, and how to roll back to it"
        )
        self.file = file
        self.offset = offset
        self.damage = damage


class UnsupportedLog(DstlError):
    """A later release wrote the object; or it is larger than the limit, and may be damaged."""


class MissingLogObject(DstlError, FileNotFoundError):
    """An object that another object names does not exist."""


class JvmFailed(DstlError):
    """The Java process that reads state did not start, or ended early; the message has its last output."""


class UnreadableState(DstlError):
    """Spark's classes could not read the state, or the selection does not exist; the message has their error."""


class QuerySeemsToRun(DstlError):
    """A query seems to run on a checkpoint that a command would change; the message names the sign."""


class CannotPin(DstlError):
    """The checkpoint takes no pins; the message says why."""


class PinTooLate(CannotPin):
    """The batch cannot be pinned any more: Spark has purged it. The message names the batch."""


class HistoryChanged(DstlError):
    """A followed query was rolled back: batches that were followed are not in its history any more.

    `last` is the last followed batch that still is, or None if that is unknown.
    """

    def __init__(self, message: str, last: int | None) -> None:
        super().__init__(message)
        self.last = last


class FellBehind(DstlError):
    """A followed query has deleted the batch that comes next. The message names the oldest one that is there."""


class InvalidKey(DstlError, ValueError):
    """A key has other columns or types than the state; the message names those."""


class InvalidRequest(DstlError, ValueError):
    """A request to a server of state cannot be understood; the message has the requests that there are."""


class ResultTooLarge(DstlError):
    """A read of a local copy, or a followed batch, has more rows or bytes than its limit, which the message names."""


class CannotRollBack(DstlError):
    """The query cannot be rolled back to the batch; the message says why, and names another batch."""


class CannotExport(DstlError):
    """The checkpoint cannot be exported to that place; the message says why, and what to do."""


class CannotProbe(DstlError, OSError):
    """Storage rejected or did not answer requests of a probe; the message names the place and has the answer."""


class CannotConvert(DstlError):
    """The checkpoint cannot be converted to that place; the message says why, and what to do."""


class CannotRepartition(DstlError):
    """The number of partitions of the checkpoint cannot be changed; the message says why, and what to do."""
