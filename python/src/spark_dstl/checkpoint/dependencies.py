"""What stored checkpoints are read with, imported when it is first needed: the package works without it."""

from importlib import import_module
from typing import Any

from spark_dstl.errors import MissingDependency

EXTRA = 'pip install "spark-dstl[inspect]"'


def needed(module: str, purpose: str) -> Any:
    """Return the module; raise `MissingDependency`, which says what to install, if it is not there."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0].replace("_", "-")
        raise MissingDependency(f"{purpose} needs the package {package}: {EXTRA}") from error
