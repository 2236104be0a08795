"""What storage is like for a query's log: measured with small objects that are removed again.

This writes, and nothing of it looks into checkpoints. What does, in `spark_dstl.checkpoint`, knows nothing of this.
"""
