# SPDX-License-Identifier: Apache-2.0
"""Conversion: a checkpoint for the log, made from one of Spark's default, HDFS-backed provider."""
