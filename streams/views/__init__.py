"""Seeing it work: what was said of a URL, a cluster, a site, as tables that follow the verdicts and as web pages."""
