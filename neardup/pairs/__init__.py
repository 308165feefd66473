"""Two records to numbers."""
