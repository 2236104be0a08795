"""`dstl state`, `dstl changes` and `dstl diff`."""
