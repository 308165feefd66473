"""Results of queries: their file, their groups by a learned model, their signals, their pages in a browser."""
