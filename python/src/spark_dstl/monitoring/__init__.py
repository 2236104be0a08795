"""What the log and its queries do, for those who look after them."""
