"""Henzinger 2006's evaluation as a toolkit: pair graphs, samples, labels, its tables and plots, rules side by side."""
