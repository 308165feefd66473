"""Answers questions about a page beside a running scan or matcher, without adding the page."""
