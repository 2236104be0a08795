# SPDX-License-Identifier: Apache-2.0
"""Imports of optional packages, at their first use."""

from importlib import import_module
from typing import Any

from spark_dstl.errors import DstlError, MissingPackage

INSPECT = "inspect"
MONITORING = "monitoring"
PROBE = "probe"
SPARK = "spark"


def needed(module: str, purpose: str, extra: str = INSPECT) -> Any:
    """Return the module. Raises `MissingPackage`, which names the extra to install, if it is missing."""
    package = module.split(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError) or (error.name or "").split(".")[0] != package:
            raise DstlError(f"{purpose} needs the package {package}, which cannot be imported: {error}") from error
        raise MissingPackage(package.replace("_", "-"), purpose, extra) from error
