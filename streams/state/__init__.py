"""State directories of scan, library and matcher, and their checkpoints."""
