"""A partition run over a corpus: what is read, the engine that sorts and groups, the processes that compare."""
