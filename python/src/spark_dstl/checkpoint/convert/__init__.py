"""Making a checkpoint whose state is in the log of one of Spark's default, HDFS-backed provider."""
