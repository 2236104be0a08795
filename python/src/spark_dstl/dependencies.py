# SPDX-License-Identifier: Apache-2.0
"""Imports of optional packages, at their first use."""

from importlib import import_module
from typing import Any

from spark_dstl.errors import MissingPackage

INSPECT = "inspect"
MONITORING = "monitoring"
PROBE = "probe"
SPARK = "spark"


def needed(module: str, purpose: str, extra: str = INSPECT) -> Any:
    """Return the module. Raises `MissingPackage`, which names the extra to install, if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackage(module.split(".")[0].replace("_", "-"), purpose, extra) from error
