# SPDX-License-Identifier: Apache-2.0
"""What the log and its queries do, for those who look after them."""
