"""Everything that reads bytes of others, under bytes that a search for new paths makes up."""
