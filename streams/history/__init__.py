"""Past verdicts: replays, exports, copies, and differences between two sets of verdicts."""
