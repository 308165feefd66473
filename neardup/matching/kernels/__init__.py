"""The walk that judges a batch, compiled: one file a part of the rows, from the table up to the life of a URL."""
