"""Computes the tables and plots of Henzinger 2006, and the paper's choice of thresholds."""
