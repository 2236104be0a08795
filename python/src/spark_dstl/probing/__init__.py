# SPDX-License-Identifier: Apache-2.0
"""Measuring storage for the log of a query, with small objects that are removed again.

This package writes to storage. `spark_dstl.checkpoint` does not import it.
"""
