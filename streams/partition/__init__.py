"""Runs a partition over a corpus: input, the engine that sorts and groups, and the processes that compare texts."""
