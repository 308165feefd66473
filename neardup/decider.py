"""The decider: rule, thresholds and limits that can change a verdict, named by a digest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Annotated, NamedTuple, get_args, get_origin, get_type_hints

from neardup.digested_json import later, newer, read, written
from neardup.errors import OtherVersion

#: Names of the online rules of `neardup.rules`. So a command that only lists them need not import the rules.
ONLINE_RULES = ("shingling", "simhash", "combined", "site-split", "simhash64", "tape", "verified")
#: These rules, and that of a learned model, which only the partition has.
RULE_NAMES = (*ONLINE_RULES, "signals")


@dataclass(frozen=True)
class SiteOverride:
    """Numbers of one registrable domain: a value of `Decider.sites`, whose keys are the domains."""

    #: Whether pages of the site have exact duplicates only.
    never_merge: bool = False
    #: Least tape score of the site's near-duplicates, 0 to 1. It raises `tape_min`, `two_sites_tape_min`,
    #: `short_tape_min` and `strict_tape_min` of the decider, and lowers none of them.
    tape_min: float | None = None


#: What to do with an index of earlier versions that was kept in shards: their deciders have two numbers more.
NO_SHARDS = (
    "made with shards, which this version of neardup does not have; the log of sketches remains: judge it anew by one "
    "matcher in another generation (neardup backfill --generation NAME --sketches-of GENERATION; `` is the unnamed "
    "one), and cut over (neardup generation cutover NAME); of a scan: scan the files again into another directory"
)
#: The newest version of the rules that this program knows.
RULE_VERSION = 2


class Shapes(Enum):
    """What a number of the decider shapes. The field's annotation names it; settings, shadow rules and tuning use it.

    A shadow rule can change RULING numbers only, since it has the live rule's index, candidates and clusters. An index
    can be continued under another decider if all INDEX numbers are equal.
    """

    INDEX = "rows and keys of the index"
    CANDIDATES = "the candidates of a page"
    CLUSTERS = "the life of URLs and clusters"
    RULING = "the ruling on a pair"


#: A number from 0 to 1.
Share = Annotated[float, (0, 1)]


@dataclass(frozen=True)
class Decider:
    """Every number that can change a verdict. Frozen; named by `digest`.

    Scores are shares from 0 to 1. Names with `c_` are agreeing bits of 384, `b_min` is equal supershingles of 6.
    `neardup config` lists the numbers with their meaning and limits. `dataclasses.replace(decider, tape_min=0.9)`
    changes a number.

    Raises:
        ValueError: if a number is beyond its limits.
    """

    # The annotation of a field has its limits, what it shapes, and its help text; settings, `--help` and `neardup
    # config` are made from it. A number that is added after the first release uses `neardup.digested_json.later`, so
    # that no digest changes.
    scheme: str  # digest of the scheme
    rule: Annotated[str, Shapes.INDEX, "Rule that decides whether two pages are near-duplicates"] = "verified"
    rule_version: int = RULE_VERSION  # raised only if verdicts can change
    # the papers' rules
    b_min: Annotated[int, (0, 6), Shapes.RULING, "Equal supershingles that algorithm B demands"] = 2
    c_min: Annotated[int, (0, 384), Shapes.RULING, "Agreeing bits that algorithm C demands"] = 372
    combined_c_min: Annotated[int, (0, 384), Shapes.RULING, "Agreeing bits that the combined algorithm demands"] = 355
    simhash64_min: Annotated[int, (0, 64), Shapes.RULING, "Agreeing bits that simhash64 demands"] = 59
    # rules on tapes
    thin_tokens: Annotated[int, (0, 10_000), Shapes.INDEX, "Pages with fewer tokens have only exact duplicates"] = 20
    short_tokens: Annotated[
        int,
        (0, 10_000),
        Shapes.RULING,
        "Pages with fewer tokens need short_tape_min; main contents with fewer do not count",
    ] = 50
    tape_min: Annotated[Share, Shapes.RULING, "Tape score of a near-duplicate on one site"] = 0.74
    # two sites rarely share a template, so that less text in common is enough
    two_sites_tape_min: Annotated[Share, Shapes.RULING, "Tape score of a near-duplicate on two sites"] = 0.7
    short_tape_min: Annotated[Share, Shapes.RULING, "Tape score of a near-duplicate that is a short page"] = 0.85
    strict_tape_min: Annotated[
        Share, Shapes.RULING, "Tape score in doubt: of very long pages, and of one title at two places of a site"
    ] = 0.95
    content_tape_min: Annotated[Share, Shapes.RULING, "Score of the main contents' tapes for same_content"] = 0.74
    # the default rule
    length_share_min: Annotated[
        Share, Shapes.RULING, "Tokens of the shorter page as a share of those of the longer one, at least"
    ] = 0.5
    # below 4 a page has releases or languages; more pages of one name are those of a template
    alike_min: Annotated[
        int, (1, 255), Shapes.RULING, "Pages of one title and URL ending from which on the title proves nothing"
    ] = 4
    # noise: one stamp above and one below
    noise_gaps_max: Annotated[
        int,
        (0, 500),
        Shapes.RULING,
        "Places where texts of one page may differ by noise, each in stamp_words_max words",
    ] = 2
    stamp_words_max: Annotated[
        int,
        (0, 100),
        Shapes.RULING,
        "Words that a stamp may have, and no more than its tokens with digits; 0: no stamps",
    ] = 4
    # 1 of 90 words: an article that a site has under two headings of its menu is longer
    path_tape_max: Annotated[
        Share, Shapes.RULING, "Tape score below which words of paths tell pages apart; 0: never"
    ] = 0.978
    # replacing one word everywhere costs a copier nothing
    renamed_tape_min: Annotated[
        Share,
        Shapes.RULING,
        "Tape score from which different titles no longer keep pages of two sites apart; 0: never do",
    ] = 0.93
    # a copy with spam added that is crawled before its original must not hide it
    added_max: Annotated[
        Share,
        Shapes.RULING,
        "How much an older page of another owner may add and still hide a page, as a share of it; one that adds more "
        "has the same content; 1: any",
    ] = 0.16
    # one article on two sites: each puts its own name, menus, comments and teasers around it
    syndicated_tokens_min: Annotated[
        int, (0, 10_000), Shapes.RULING, "Tokens of the common stretch of two sites' articles, at least; 0: off"
    ] = 100
    # half: a page with a stranger's article in it, made to be found with it, has little room
    syndicated_share_min: Annotated[Share, Shapes.RULING, "Share of each article that is this stretch, at least"] = 0.5
    syndicated_words_min: Annotated[
        int,
        (0, 100),
        Shapes.RULING,
        "Words that both headlines have, at least, and half of the words of the shorter one",
    ] = 3
    # keys that a page is found by, for rules on tapes; figures: tests/measure/bench/keys-and-options.md
    supershingles_posted: Annotated[
        int,
        (0, 8),
        Shapes.INDEX,
        "Small supershingles among the keys of a page; 8 for sketches of earlier versions of the scheme alone",
    ] = 7
    blocks_posted: Annotated[int, (0, 6), Shapes.INDEX, "Blocks of the log-tf simhash among the keys of a page"] = 2
    # it has the place that the eighth supershingle had in sketches of earlier versions of the scheme
    content_starts_posted: Annotated[
        int, (0, 1), Shapes.INDEX, "Whether the first words of the main content are among the keys of a page; 0: no"
    ] = later(1, neutral=0)
    # the life of a URL; expiry happens at log positions (`streams.pipeline.batch_fold`)
    reclaim_days: Annotated[
        int, (0, 10_000), Shapes.CLUSTERS, "Days of log time within which a returning page reclaims its cluster; 0: off"
    ] = 30
    expiry_days: Annotated[
        int, (0, 36_500), Shapes.CLUSTERS, "Days of log time after which pages not fetched again expire; 0: never"
    ] = 0
    # bounds
    postings_max: Annotated[
        int,
        (1, 64),
        Shapes.CANDIDATES,
        "A key with more pages turns hot, and then finds candidates for pages of other sites alone",
    ] = 64
    hot_postings_kept: Annotated[
        int, (0, 8), Shapes.INDEX, "Sites of which a hot key keeps a page, for pages of other sites; 0: none"
    ] = 8
    # unrelated pages agree in half of the bits, give or take 30; near-duplicates in more than 300
    hot_c_min: Annotated[
        int, (0, 384), Shapes.CANDIDATES, "Agreeing bits of simhashes that candidates of hot keys need"
    ] = 240
    candidates_max: Annotated[int, (1, 64), Shapes.CANDIDATES, "Candidates of a page that are compared, at most"] = 64
    length_gap_max: Annotated[
        int, (0, 255), Shapes.CANDIDATES, "Difference of log-lengths (eighths of a doubling) of candidates, at most"
    ] = 9
    # a learned model, for `neardup partition --method signals:MODEL` alone
    model: str = ""
    sites: Annotated[Mapping[str, SiteOverride], Shapes.RULING, "Settings of single sites"] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        for name, number in numbers().items():
            value = getattr(self, name)
            if number.limits and not (isinstance(value, int | float) and number.limits[0] <= value <= number.limits[1]):
                low, high = number.limits
                raise ValueError(f"{name} of the decider is {value!r}, not a number from {low} to {high}")
        if self.supershingles_posted + self.content_starts_posted > 8:
            raise ValueError("supershingles_posted of the decider is 8, at most 7 beside content_starts_posted 1")

    @cached_property
    def digest(self) -> str:
        """The name of the decider: 32 hex digits."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=16, person=b"neardup-decide").hexdigest()

    def to_json(self) -> str:
        return json.dumps(written(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, where: str = "the decider") -> "Decider":
        """Read a decider.

        Args:
            text: the JSON of `to_json`.
            where: origin of the text, which errors name.

        Raises:
            OtherVersion: if this program does not know a number, the rule or the rule version of the text, or if the
                text names shards.
            ValueError: if the text is not a decider.
        """
        values = json.loads(text)
        if isinstance(values, dict) and values.keys() & {"shards", "epoch"}:
            raise OtherVersion(f"{where}: {NO_SHARDS}")
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


class Number(NamedTuple):
    """The annotation of a field of the decider."""

    #: Type of the value.
    kind: type
    #: Least and greatest value; empty if the field is neither a whole number nor a share.
    limits: tuple[int, ...]
    #: What the number shapes.
    shapes: Shapes
    #: One sentence for `--help` and the reference.
    help: str


@cache
def numbers() -> Mapping[str, Number]:
    """The fields of the decider that are settings, by name."""
    out: dict[str, Number] = {}
    for name, hint in get_type_hints(Decider, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, *limits, shapes, text = get_args(hint)
            out[name] = Number(get_origin(kind) or kind, tuple(limits[0]) if limits else (), shapes, text)
    return out


def shaping(*shapes: Shapes) -> list[str]:
    """Return the names of the fields that shape one of `shapes`."""
    return [name for name, number in numbers().items() if number.shapes in shapes]
