"""The embedded run: sources, segments, scan."""
