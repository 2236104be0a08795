# SPDX-License-Identifier: Apache-2.0
"""`dstl state`, `dstl changes` and `dstl diff`."""
