"""Views: tables of URLs, clusters and sites that follow the verdicts, and web pages over them."""
