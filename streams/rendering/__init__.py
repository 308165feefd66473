"""Renders hostile pages in a browser: scripts run, frames are grafted in, refreshes are followed. See README.md."""
