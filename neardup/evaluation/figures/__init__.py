"""Models what an evaluation shows: sections with tables and plots as data, and distributions with a power law."""
