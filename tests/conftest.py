"""Hooks that the controller of a distributed run needs; it loads no conftest.py of the folders below."""

from tests.gate.table import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
