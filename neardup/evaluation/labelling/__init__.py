"""Supports labelling by people: rounds, pages, criteria, and agreement of labellers."""
