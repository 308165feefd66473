"""The settings of the stream."""
