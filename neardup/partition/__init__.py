"""Huang 2008: a corpus into sets of similar pages, by signatures, perhaps-similar sets and trustable LCS.

Pure functions: texts, arrays and numbers in and out. README.md beside this file says what each step is.
"""

from neardup.partition.parameters import Parameters
from neardup.partition.signatures import signatures
from neardup.partition.texts import Document, document_of, sentences
from neardup.partition.trustable import Likeness, compare

__all__ = ["Document", "Likeness", "Parameters", "compare", "document_of", "sentences", "signatures"]
