"""The tables and plots of Henzinger 2006, and how the paper chose its thresholds."""
