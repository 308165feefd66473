"""Evaluates rules over a crawl: labels, tables of the papers, learned models, proposed numbers."""
