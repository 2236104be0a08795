# SPDX-License-Identifier: Apache-2.0
"""A Java process with the classes of Spark and Hadoop, and what it reads: state, and storage of Hadoop."""
