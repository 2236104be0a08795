"""Everything that this package raises on purpose."""


class DstlError(Exception):
    """The base of all errors of this package."""


class UnknownOption(DstlError, ValueError):
    """An option was given that does not exist; the message names the nearest one that does."""


class InvalidOption(DstlError, ValueError):
    """An option has a value that it cannot take; the message names the key, the value and what is allowed."""


class UnsupportedSpark(DstlError, RuntimeError):
    """The installed PySpark is missing, or not one that this release works with."""


class JarNotFound(DstlError, FileNotFoundError):
    """The jar that holds the state store provider is not where it should be."""
