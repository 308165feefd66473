"""What an evaluation shows: sections with tables and plots, as data; distributions with their power law."""
