"""Judges a pair of pages by many signals and a learned classifier (Huffman 2007).

Pure functions. README.md beside this file defines each signal.
"""
