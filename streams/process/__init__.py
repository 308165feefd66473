"""This process: logs, metrics, health, signals."""
