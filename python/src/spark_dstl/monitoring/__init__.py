# SPDX-License-Identifier: Apache-2.0
"""The figures of queries and the log: listener, live view, and report."""
