"""The scan: files through sketcher and matcher in one process."""
