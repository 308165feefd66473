"""Bytes <-> records: one file a format."""
