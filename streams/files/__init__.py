"""The scan: sources, log segments, state directory."""
