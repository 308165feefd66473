"""What scan and stream share: the fold of the log."""
