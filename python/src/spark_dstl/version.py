# SPDX-License-Identifier: Apache-2.0
"""The version of the package, which is also that of the jar it ships."""

__version__ = "0.1.0"
