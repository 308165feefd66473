"""The roles of the stream on Kafka; each takes settings and returns when it was stopped."""
