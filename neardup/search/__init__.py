"""The search for candidates: posting lists, sketches and the numbers of pairs, for a batch of sketches."""
