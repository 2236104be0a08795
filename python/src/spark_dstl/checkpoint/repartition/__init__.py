# SPDX-License-Identifier: Apache-2.0
"""Another number of partitions for the state of a stopped query."""
