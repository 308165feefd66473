"""Defines the data of an evaluation: pages, pairs, labels, graphs, runs, and measures with intervals."""
