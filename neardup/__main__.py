"""Runs the command `neardup` as `python -m neardup`. The command is in `streams`, and is looked up by name."""

from importlib.metadata import entry_points

if __name__ == "__main__":
    (_command,) = entry_points(group="console_scripts", name="neardup")
    _command.load()()
