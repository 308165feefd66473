"""What decides on sketches: rule, thresholds, caps, named by a digest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from neardup.written import newer, read, written

#: `neardup.rules` has a function for each. Their names can be had without it, and what it imports.
RULE_NAMES = ("shingling", "simhash", "combined", "site-split", "simhash64", "tape", "verified")


@dataclass(frozen=True)
class SiteOverride:
    """What one registrable domain wants otherwise. never_merge: only exact duplicates count for its pages."""

    never_merge: bool = False
    tape_min: float | None = None


#: The newest version of the rules that this program knows.
RULE_VERSION = 1


@dataclass(frozen=True)
class Decider:
    """Every number that can change a verdict. Frozen; named by `digest`.

    A number that comes after the first release is a `neardup.written.later` one, so that no digest changes.
    Scores are shares (0 to 1), c_* are agreeing bits of 384, b_min equal supershingles of 6.
    """

    scheme: str  # digest of the scheme
    rule: str = "verified"
    rule_version: int = RULE_VERSION  # raised only if verdicts can change
    # the papers' rules
    b_min: int = 2
    c_min: int = 372
    combined_c_min: int = 355
    simhash64_min: int = 59
    # rules on tapes
    thin_tokens: int = 20
    short_tokens: int = 50  # below this many tokens short_tape_min counts
    tape_min: float = 0.74
    short_tape_min: float = 0.85
    strict_tape_min: float = 0.95  # crowds, and vetoes that a saturated filter cannot prove
    tape_bytes_min: int = 32  # shorter tapes: `combined` decides
    crowd_min: int = 0  # 0: off; else so many siblings demand strict_tape_min
    crowd_tape_min: float = 0.6
    content_tape_min: float = 0.74
    content_tokens_min: int = 50
    content_share_min: float = 0.2
    # the default rule
    length_share_min: float = 0.5  # of the longer text's tokens the shorter has at least this share
    # what pages of one site call themselves
    retitled_veto: bool = True  # titles of the same words differ in digits or punctuation, and so do the URLs' ends
    heading_veto: bool = True  # each heading has a token that the other page's heading and title lack
    content_apart_max: float = 0.3  # 0: off; below it main contents of two pages of one name and other places differ
    figure_gaps_min: int = 6  # 0: off; differences in so many places, by digits: records of one name. Stamps: 1 to 4
    siblings_min: int = 1  # 0: off; so many pages of one name and other URLs: names do not tell pages apart
    alike_min: int = 16  # the same for pages whose URLs end alike: more than a page has releases
    alike_max: int = 64  # so many: not even that tells
    sessions_max: int = 1  # pages of one name and place, of other queries: so few may be one under odd sessions
    noise_gaps_max: int = 2  # siblings may differ in so many places, as by one stamp above and one below
    noise_words_max: int = 8  # and in so many words away from digits: a URL that a page names has 3 to 8
    noise_digits_max: int = 24  # and in so many tokens with digits: a stamp has 2 to 8
    noise_tape_min: float = 0.6  # of one name, different by noise without any words: a stamp of 10 on 30 tokens
    # keys that a page is found by, for rules on tapes: of a record's 8 small supershingles and 6 blocks of its log-tf
    # simhash. The figures behind the choice: tests/bench/README.md
    supershingles_posted: int = 8
    blocks_posted: int = 0
    # bounds
    postings_max: int = 64  # a longer list turns its key hot
    candidates_max: int = 64
    length_gap_max: int = 9  # in eighths of a binary logarithm; see neardup.index.keys
    sites: Mapping[str, SiteOverride] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """32 hex digits that name the decider."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=16, person=b"neardup-decide").hexdigest()

    def to_json(self) -> str:
        return json.dumps(written(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, where: str = "the decider") -> "Decider":
        """where: what the text is of, for errors.

        Raises NewerProgram for numbers, a rule or a version of it that this program does not know, ValueError for what
        is no decider.
        """
        values = read(cls, json.loads(text), where)
        version, rule, sites = values["rule_version"], values["rule"], values["sites"]
        if not (isinstance(version, int) and isinstance(rule, str) and isinstance(sites, dict)):
            raise ValueError("rule_version is no number, rule no text, or sites no object")
        if version > RULE_VERSION:
            raise newer(where, f"version {version} of the rules")
        if rule not in RULE_NAMES:
            raise newer(where, f"rule {rule!r}")
        values["sites"] = {site: SiteOverride(**read(SiteOverride, wish, where)) for site, wish in sites.items()}
        return cls(**values)
