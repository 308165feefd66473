"""A year of a crawl in one process: what a clock does that is moved by hand, and a model that knows who is held."""
