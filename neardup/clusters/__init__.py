"""Clusters and the life of URLs: the effects of a batch on the index, and its verdicts."""
