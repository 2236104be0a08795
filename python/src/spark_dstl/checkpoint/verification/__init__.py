"""Whether a checkpoint holds what it must, and what is too much in it."""
