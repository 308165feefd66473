"""The former place of the entry point, until every environment is installed anew."""

from streams.commands import main

__all__ = ["main"]
