"""Labelling by people: rounds, pages, criteria, and how far labellers agree."""
