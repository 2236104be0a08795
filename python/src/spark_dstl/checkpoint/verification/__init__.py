# SPDX-License-Identifier: Apache-2.0
"""Verification of a checkpoint: damage, batches that cannot be rebuilt, and leftovers."""
