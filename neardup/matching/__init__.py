"""One batch of records against the index."""
