# SPDX-License-Identifier: Apache-2.0
"""The format of the log, version 2, of docs/log-file-format.md: names, bytes, rules. Reads no storage."""
