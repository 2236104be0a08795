"""A Java process with the classes of Spark and Hadoop, and what it reads: state, and storage of Hadoop."""
