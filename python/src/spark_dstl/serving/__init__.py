# SPDX-License-Identifier: Apache-2.0
"""`dstl serve`: the state of a running query over Arrow Flight."""
