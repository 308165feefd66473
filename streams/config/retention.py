"""How long the topics keep what they hold, by default."""

from neardup.limits import DAY_MS

PAGES_MS = 7 * DAY_MS
SKETCHES_MS = 30 * DAY_MS
VERDICTS_MS = 30 * DAY_MS
