"""The format of the log, version 2, as docs/log-file-format.md has it: names, bytes, rules. Reads no storage."""
