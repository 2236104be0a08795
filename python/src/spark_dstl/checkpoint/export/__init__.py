"""Making a checkpoint that stock Spark continues of one whose state is in the log."""
