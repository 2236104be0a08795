# SPDX-License-Identifier: Apache-2.0
"""Everything that this package raises on purpose."""


class DstlError(Exception):
    """The base of all errors of this package."""


class InvalidOption(DstlError, ValueError):
    """An option has a value that it cannot take; the message names the option, the value and what is allowed."""


class UnsupportedSpark(DstlError, RuntimeError):
    """Spark is missing, or not one that this release works with; the message names what was found and where."""


class JarNotFound(DstlError, FileNotFoundError):
    """The jar is not where it should be."""


class InvalidProgress(DstlError, ValueError):
    """What should be the progress of a streaming query is not; the message names the place and shows its beginning."""


class MissingPackage(DstlError, ImportError):
    """A Python package that only some functions need is not installed; the message says how to get it."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f'{purpose} needs the package {package}, which is not installed: pip install "spark-dstl[{extra}]"'
        )


class NotWatchable(DstlError, RuntimeError):
    """What is to be watched is not there, or not what it should be; the message names the place."""


class JarNotLoaded(DstlError, RuntimeError):
    """Spark runs already, and was started without the jar or with that of another release."""


class CheckpointNotFound(DstlError, FileNotFoundError):
    """There is no checkpoint of a query at the path; the message names what was looked for."""


class UnreadableStorage(DstlError, OSError):
    """Storage did not answer, or refused; the message names the place and what storage said."""


class DamagedLog(DstlError):
    """A stored object is not what was written. Nothing of it is used.

    `file` and `offset` (bytes from the object's start) say where, `damage` what is wrong.
    """

    def __init__(self, file: str, offset: int, damage: str) -> None:
        super().__init__(
            f"{file} is damaged at offset {offset}: {damage}. Restore the object from a backup or an older object "
            "version; `dstl verify` says which batch is intact, and how to roll back to it"
        )
        self.file = file
        self.offset = offset
        self.damage = damage


class UnsupportedLog(DstlError):
    """A later release wrote the object, or it is larger than anything that is written; it is not damaged."""


class MissingLogObject(DstlError, FileNotFoundError):
    """An object that another one names is not there."""


class JvmFailed(DstlError):
    """The Java process that reads state did not start, or ended too early; the message says what it last said."""


class UnreadableState(DstlError):
    """Spark's classes could not read the state, or do not know what was asked for; the message has what they say."""


class QuerySeemsToRun(DstlError):
    """A query seems to be at work on a checkpoint that was to be changed; the message says what that rests on."""


class CannotRollBack(DstlError):
    """The query cannot be rolled back to the batch; the message says why, and to which it can be."""


class CannotExport(DstlError):
    """The checkpoint cannot be exported, or not to that place; the message says why, and what to do."""


class CannotProbe(DstlError, OSError):
    """Storage refused, or did not answer, what a probe asked of it; the message names the place and what it said."""


class CannotConvert(DstlError):
    """The checkpoint cannot be converted, or not to that place; the message says why, and what to do."""
