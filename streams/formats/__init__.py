"""Encoders and decoders of records, one module per format."""
