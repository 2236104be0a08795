# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on storage, read without a JVM.

The entry point is `open_checkpoint`. docs/operations.md describes the objects, docs/log-file-format.md the format.
"""
