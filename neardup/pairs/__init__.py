"""Compares two sketch records: computes the numbers of a pair."""
