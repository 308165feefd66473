"""Logs, metrics, health, traces and shutdown of a process."""
