"""What was said, and what would be said otherwise: replays, backfills, and how two of them differ."""
