# SPDX-License-Identifier: Apache-2.0
"""Export: a checkpoint for stock Spark, made from one with its state in the log."""
