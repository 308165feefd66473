"""The compiled fold: judges the records of a batch, one after another, over rows that were read."""
