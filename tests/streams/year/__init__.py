"""A year of a crawl in one process: a clock that is moved by hand, and a model of the held pages."""
