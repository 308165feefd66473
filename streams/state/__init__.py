"""State directories."""
