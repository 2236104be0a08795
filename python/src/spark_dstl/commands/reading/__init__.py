# SPDX-License-Identifier: Apache-2.0
"""Commands that read the rows of the state."""
