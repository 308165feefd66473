"""The online rules, each one file, selectable by name."""

from neardup.rules import combined, shingling, simhash, simhash64, site_split, tape, verified
from neardup.rules.base import Pair, Rule, Ruling

RULES: dict[str, Rule] = {
    "shingling": shingling.decide,
    "simhash": simhash.decide,
    "combined": combined.decide,
    "site-split": site_split.decide,
    "simhash64": simhash64.decide,
    "tape": tape.decide,
    "verified": verified.decide,
}

__all__ = ["RULES", "Pair", "Rule", "Ruling"]
