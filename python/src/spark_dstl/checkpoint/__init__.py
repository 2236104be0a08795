"""Checkpoints as they lie on storage, read without a JVM.

`open_checkpoint` is where to begin. What lies where is in docs/operations.md, the format in docs/log-file-format.md.
"""
