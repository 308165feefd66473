"""Sketch records: how they are made, laid out and read."""
