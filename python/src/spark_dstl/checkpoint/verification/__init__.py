# SPDX-License-Identifier: Apache-2.0
"""Whether a checkpoint holds what it must, and what is too much in it."""
