"""Everything that this package raises on purpose."""


class DstlError(Exception):
    """The base of all errors of this package."""


class InvalidOption(DstlError, ValueError):
    """An option has a value that it cannot take; the message names the option, the value and what is allowed."""


class UnsupportedSpark(DstlError, RuntimeError):
    """Spark is missing, or not one that this release works with; the message names what was found and where."""


class JarNotFound(DstlError, FileNotFoundError):
    """The jar is not where it should be."""


class JarNotLoaded(DstlError, RuntimeError):
    """Spark runs already, and was started without the jar or with that of another release."""
