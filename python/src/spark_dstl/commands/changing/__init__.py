# SPDX-License-Identifier: Apache-2.0
"""Commands that write to a checkpoint of a stopped query, or write another one from it."""
