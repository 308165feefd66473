"""How long the topics keep what they hold, by default."""

DAY_MS = 24 * 3600 * 1000

PAGES_MS = 7 * DAY_MS
SKETCHES_MS = 30 * DAY_MS
VERDICTS_MS = 30 * DAY_MS
