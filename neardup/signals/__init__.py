"""Judges a pair of pages by many signals and a learned classifier (Huffman 2007).

Pure functions. README.md beside this file defines each signal.
"""

from neardup.signals.idf import Idf
from neardup.signals.result_pages import Body, Result
from neardup.signals.table import SETS, SIGNALS, Signal, signals_of

__all__ = ["SETS", "SIGNALS", "Body", "Idf", "Result", "Signal", "signals_of"]
