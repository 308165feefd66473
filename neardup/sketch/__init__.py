"""A sketch record: made, laid out, read."""
