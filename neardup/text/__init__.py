"""From bytes to tokens."""
