# SPDX-License-Identifier: Apache-2.0
"""`python -m spark_dstl` is `dstl`."""

from spark_dstl.commands import main

main(prog_name="dstl")
