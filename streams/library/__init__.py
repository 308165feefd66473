"""The library: pages in, verdicts out, from Python."""
