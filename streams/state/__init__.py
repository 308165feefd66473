"""State directories and their checkpoints."""
