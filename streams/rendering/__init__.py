"""Pages as a browser makes them: scripts run, frames grafted in, refreshes followed. Pages are hostile; README.md."""
