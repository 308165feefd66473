"""Runs the command `neardup`: `python -m neardup`. The command belongs to `streams`, and is found by its name alone."""

from importlib.metadata import entry_points

(_command,) = entry_points(group="console_scripts", name="neardup")
_command.load()()
