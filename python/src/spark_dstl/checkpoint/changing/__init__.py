# SPDX-License-Identifier: Apache-2.0
"""Changes of a checkpoint whose query is stopped."""
