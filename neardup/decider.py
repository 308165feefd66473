"""What decides on sketches: rule, thresholds, caps, named by a digest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from neardup.written import later, newer, older, read, written

#: `neardup.rules` has a function for each. Their names can be had without it, and what it imports.
RULE_NAMES = ("shingling", "simhash", "combined", "site-split", "simhash64", "tape", "verified", "signals")


@dataclass(frozen=True)
class SiteOverride:
    """What one registrable domain wants otherwise. never_merge: only exact duplicates count for its pages."""

    never_merge: bool = False
    tape_min: float | None = None


#: The newest version of the rules that this program knows.
RULE_VERSION = 1


#: Numbers of steps that did not pay on pages they were not made on: what they did is done no more.
_GONE = frozenset(
    (
        *("contained_length_max", "contained_share_min", "contained_tape_min"),
        *("content_apart_max", "figure_gaps_min", "noise_tape_min", "path_veto", "sessions_max"),
    )
)

#: A number from 0 to 1.
Share = Annotated[float, (0, 1)]


@dataclass(frozen=True)
class Decider:
    """Every number that can change a verdict. Frozen; named by `digest`.

    A number that comes after the first release is a `neardup.written.later` one, so that no digest changes. Each says
    what it may be, and for people what it does: settings, their help and `neardup config` follow from that. Scores are
    shares (0 to 1), c_* are agreeing bits of 384, b_min equal supershingles of 6.
    """

    scheme: str  # digest of the scheme
    rule: Annotated[str, "Rule that decides whether two pages are near-duplicates"] = "verified"
    rule_version: int = RULE_VERSION  # raised only if verdicts can change
    # the papers' rules
    b_min: Annotated[int, (0, 6), "Equal supershingles that algorithm B asks for"] = 2
    c_min: Annotated[int, (0, 384), "Agreeing bits that algorithm C asks for"] = 372
    combined_c_min: Annotated[int, (0, 384), "Agreeing bits that the combined algorithm asks for"] = 355
    simhash64_min: Annotated[int, (0, 64), "Agreeing bits that simhash64 asks for"] = 59
    # rules on tapes
    thin_tokens: Annotated[int, (0, 10_000), "Below so many tokens only exact duplicates count"] = 20
    short_tokens: Annotated[int, (0, 10_000), "Below so many tokens short_tape_min counts"] = 50
    tape_min: Annotated[Share, "Tape score of a near-duplicate"] = 0.74
    short_tape_min: Annotated[Share, "The same for short pages"] = 0.85
    strict_tape_min: Annotated[Share, "The same in crowds, and where a veto cannot be proved"] = 0.95
    tape_bytes_min: Annotated[int, (0, 500), "With shorter tapes the combined algorithm decides"] = 32
    crowd_min: Annotated[int, (0, 64), "So many siblings on the site demand strict_tape_min; 0: off"] = 0
    crowd_tape_min: Annotated[Share, "Tape score from which a page counts as a sibling"] = 0.6
    content_tape_min: Annotated[Share, "Score of the main contents' tapes for same_content"] = 0.74
    content_tokens_min: Annotated[int, (0, 100_000), "Tokens that a main content has at least"] = 50
    content_share_min: Annotated[Share, "Share of the page that its main content is at least"] = 0.2
    # the default rule
    length_share_min: Annotated[Share, "Share of the longer page's tokens that the shorter has at least"] = 0.5
    # what pages of one site call themselves
    retitled_veto: Annotated[
        bool, "Titles of the same words that differ in digits, and URLs that end otherwise, tell apart"
    ] = True
    heading_veto: Annotated[bool, "Headings that each have a word of their own tell pages apart"] = True
    siblings_min: Annotated[
        int, (0, 255), "Pages of one name, their URLs ending otherwise, that are a crowd; 0: off"
    ] = 1
    alike_min: Annotated[int, (1, 255), "The same for pages whose URLs end alike"] = 16  # a page has fewer releases
    alike_max: Annotated[int, (1, 255), "So many of them are a crowd in which not even stamps may differ"] = 64
    # noise: one stamp above and one below, each of 2 to 8 tokens; a URL that a page names has 3 to 8 words
    noise_gaps_max: Annotated[int, (0, 500), "Places in which siblings may differ"] = 2
    noise_words_max: Annotated[int, (0, 10_000), "Words away from digits in which siblings may differ"] = 8
    noise_digits_max: Annotated[int, (0, 10_000), "Tokens with digits in which siblings may differ"] = 24
    stamp_words_max: Annotated[
        int,
        (0, 100),
        "Words of a stamp, beside as many tokens with digits; 0: nothing that differs is one",
    ] = later(4, neutral=0)
    letters_veto: Annotated[bool, "Titles that differ in case or signs alone tell apart, also pages of equal words"] = (
        later(True, neutral=False)
    )
    # of 90 words one: an article that a site has under two headings of its menu is longer
    path_tape_max: Annotated[Share, "Tape score below which words of paths tell pages apart; 0: off"] = later(
        0.978, neutral=0.0
    )
    record_veto: Annotated[
        bool, "Numbers in paths tell pages of one title apart, where nothing else in the URL names them"
    ] = later(True, neutral=False)
    numbered_veto: Annotated[bool, "The same of numbers among letters at the ends of paths"] = later(
        True, neutral=False
    )
    own_word_veto: Annotated[
        bool, "A word of its path that a page says, and neither the other path nor the other page, tells it apart"
    ] = later(True, neutral=False)
    elsewhere_veto: Annotated[
        bool, "Pages of one name and other places are one only from strict_tape_min on, or if a stamp differs"
    ] = later(True, neutral=False)
    # a word replaced wherever it stands costs whoever copies a page nothing
    renamed_tape_min: Annotated[
        Share, "Tape score from which titles and beginnings do not tell pages of two sites apart; 0: off"
    ] = later(0.93, neutral=0.0)
    # lists and figures that change fill the same places, and keep most words; an older or a longer text does not
    middle_tape_max: Annotated[
        Share, "Tape score below which texts of two sites that differ all over must be of one length; 0: off"
    ] = later(0.82, neutral=0.0)
    middle_tape_min: Annotated[Share, "Tape score that is enough if their simhashes agree as well"] = later(
        0.65, neutral=0.65
    )
    middle_length_min: Annotated[Share, "Length of the shorter as a share of the longer one's, at least"] = later(
        0.95, neutral=0.95
    )
    middle_c_min: Annotated[int, (0, 384), "Agreeing bits that are asked of such simhashes"] = later(360, neutral=360)
    # a copy with spam added that is crawled before its original would hide it
    added_max: Annotated[
        Share, "Share of a page that an older page of another owner may add to it and hide it, at most; 1: any"
    ] = later(0.16, neutral=1.0)
    # one article on two sites: each puts its own name, menus, comments and teasers about it
    syndicated_tokens_min: Annotated[
        int, (0, 10_000), "Tokens of one stretch that the articles of two sites have in common at least; 0: off"
    ] = later(100, neutral=0)
    # half: whoever puts a stranger's article into a page of his own, so that it is found there, has little room
    syndicated_share_min: Annotated[Share, "Share of each article that this stretch is at least"] = later(
        0.5, neutral=0.5
    )
    syndicated_words_min: Annotated[
        int, (0, 100), "Words that their headlines have in common at least, and half of the shorter one"
    ] = later(3, neutral=3)
    # keys that a page is found by, for rules on tapes; the figures behind the choice: tests/measure/bench/README.md
    supershingles_posted: Annotated[int, (0, 8), "Small supershingles among the keys of a page"] = 8
    blocks_posted: Annotated[int, (0, 6), "Blocks of the log-tf simhash among the keys of a page"] = 0
    # the life of a URL
    reclaim_days: Annotated[
        int, (0, 10_000), "Days of log time within which a page that comes back takes its cluster over again; 0: off"
    ] = later(30, neutral=0)
    # what verdicts say besides: whoever chooses a canonical page, or asks why pages find nobody, has no sketches
    facts_told: Annotated[bool, "Verdicts say which URL a page names as canonical, and which keys it turned hot"] = (
        later(True, neutral=False)
    )
    # what was learned (`neardup.signals.online`)
    model: Annotated[str, "Model of the rule signals, as a file or as the JSON of one"] = later("", neutral="")
    # how long a page counts that nobody sees any more; swept at places of the log (`streams.pipeline.expiry`)
    expiry_days: Annotated[int, (0, 36_500), "Days of log time after which unseen pages are dropped; 0: never"] = later(
        0, neutral=0
    )
    # bounds
    postings_max: Annotated[int, (1, 64), "A key with more pages than this turns hot and finds nothing any more"] = 64
    hot_postings_kept: Annotated[
        int, (0, 8), "Its oldest pages that pages of other sites find nevertheless; 0: none"
    ] = later(2, neutral=0)
    # unrelated pages agree in half of the bits, give or take 30; near-duplicates in more than 300
    hot_c_min: Annotated[int, (0, 384), "Agreeing bits that algorithm C asks for then"] = later(240, neutral=240)
    candidates_max: Annotated[int, (1, 64), "Candidates of a page that are verified at most"] = 64
    length_gap_max: Annotated[
        int, (0, 255), "Difference of length, in eighths of a power of two, beyond which none are read"
    ] = 9
    sites: Annotated[Mapping[str, SiteOverride], "What single sites want otherwise"] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """32 hex digits that name the decider."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=16, person=b"neardup-decide").hexdigest()

    def to_json(self) -> str:
        return json.dumps(written(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, where: str = "the decider") -> "Decider":
        """where: what the text is of, for errors.

        Raises OtherVersion for numbers, a rule or a version of it that this program does not know or no longer has,
        ValueError for what is no decider.
        """
        values = json.loads(text)
        if isinstance(values, dict) and (gone := sorted(_GONE & values.keys())):
            raise older(where, ", ".join(gone))
        values = read(cls, values, where)
        version, rule, sites = values["rule_version"], values["rule"], values["sites"]
        if not (isinstance(version, int) and isinstance(rule, str) and isinstance(sites, dict)):
            raise ValueError("rule_version is no number, rule no text, or sites no object")
        if version > RULE_VERSION:
            raise newer(where, f"version {version} of the rules")
        if rule not in RULE_NAMES:
            raise newer(where, f"rule {rule!r}")
        values["sites"] = {site: SiteOverride(**read(SiteOverride, wish, where)) for site, wish in sites.items()}
        return cls(**values)
