"""Settings: what can be set, and what is."""
