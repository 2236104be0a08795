# SPDX-License-Identifier: Apache-2.0
"""What follows a running query: its changes, and a local copy of its state."""
