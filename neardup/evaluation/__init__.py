"""Evaluates rules and runs: labelled pairs, the tables of three papers beside ours, and labelling by people."""
