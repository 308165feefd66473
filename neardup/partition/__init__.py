"""Partitions a corpus into sets of similar pages: signatures, perhaps-similar sets, trustable LCS (Huang 2008).

Pure functions: texts, arrays and numbers in and out. README.md beside this file describes each step.
"""

from neardup.partition.parameters import Parameters
from neardup.partition.signatures import signatures
from neardup.partition.texts import Document, document_of, sentences
from neardup.partition.trustable import Likeness, compare

__all__ = ["Document", "Likeness", "Parameters", "compare", "document_of", "sentences", "signatures"]
