"""Reads verdicts of scans and topics: show, export, copy, compare, explain, and repeat them from the log."""
