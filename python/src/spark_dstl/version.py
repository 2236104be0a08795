"""The version of the package, which is also that of the jar it ships."""

__version__ = "0.1.0"
