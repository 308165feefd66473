"""Evaluates rules on labelled pairs: comparison, tuning, and audits of a live run."""
