"""Input: formats of files, folders and remote copies, as pages with their coordinates."""
