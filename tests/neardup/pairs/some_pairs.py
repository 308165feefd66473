"""Pairs by their numbers alone: one whose pages agree in everything, and random ones near what rules ask for."""

from random import Random
from typing import Any, get_type_hints

from neardup.pairs.pair import Pair

#: A pair of long pages that agree in everything.
SAME = Pair(
    same_digest=False,
    same_site=True,
    same_hen_site=True,
    b_similarity=6,
    c_similarity=384,
    simhash64_agree=64,
    tokens_a=1000,
    tokens_b=1000,
    tape_a=400,
    tape_b=400,
    tape_score=1.0,
    content_tokens_a=800,
    content_tokens_b=800,
    content_a=200,
    content_b=200,
    content_score=1.0,
    title_veto=0,
    head_veto=0,
    same_tail=True,
    same_place=True,
    same_naming=True,
    same_title=True,
    same_words=True,
    heading_veto=0,
    gaps=0,
    gap_digits=0,
    loose_words=0,
    end_differs=False,
    gap_words=0,
    same_values=1,
    same_rest=False,
    same_address=False,
    same_heading=True,
    tape_level=0,
    own_urls=False,
    same_but_sessions=False,
    same_canonical=False,
    same_letters=True,
    path_veto=0,
    named=True,
    records=0,
    article_tokens_a=300,
    article_tokens_b=300,
    article_a=75,
    article_b=75,
    article_score=1.0,
    article_run=75,
    article_level=2,
    common_names=5,
    fewest_names=5,
    same_owner=True,
    titles_apart=0,
    own_query=False,
)

_TOKENS = (10, 19, 20, 49, 50, 200, 500, 1000, 1001)
#: What a number may be, several times where it is so more often. Of others a truth is anything, and a number is small.
_VALUES: dict[str, tuple[Any, ...]] = {
    "same_digest": (False,),
    "same_site": (True, True, False),
    "b_similarity": tuple(range(7)),
    "c_similarity": (300, 354, 355, 371, 372, 384),
    "simhash64_agree": (40, 58, 59, 64),
    "tokens_a": _TOKENS,
    "tokens_b": _TOKENS,
    "tape_a": (31, 32, 400, 400),
    "tape_b": (31, 32, 400, 400),
    "tape_score": (0.0, 0.59, 0.6, 0.7399, 0.74, 0.8, 0.85, 0.9, 0.95, 1.0),
    "content_tokens_a": (0, 19, 20, 50, 300, 400),
    "content_tokens_b": (0, 19, 20, 50, 300),
    "content_a": (200,),
    "content_b": (200,),
    "content_score": (0.0, 0.29, 0.3, 0.73, 0.74, 0.95),
    "title_veto": (0, 0, 0, 1, 2),
    "titles_apart": (0, 0, 0, 0, 1, 2),
    "path_veto": (0, 0, 0, 1, 2, 3),
    "head_veto": (0, 0, 0, 1, 2),
    "heading_veto": (0, 0, 1, 2),
    "gaps": (0, 1, 2, 3, 6),
    "gap_digits": (0, 3, 6, 24, 25),
    "loose_words": (0, 0, 3, 8, 9),
    "gap_words": (0, 2, 4, 5),
    "same_values": (-1, 0, 1, 1),
    "tape_level": (0, 0, 1),
    "article_run": (0, 24, 25, 50),
    "article_a": (25, 60, 75),
    "article_b": (25, 60, 130),
    "article_tokens_a": (0, 120, 300),
    "article_tokens_b": (120, 300, 900),
    "article_level": (1, 2, 2),
    "common_names": (0, 2, 3, 6),
    "fewest_names": (3, 6, 7),
    **dict.fromkeys(("same_letters", "named"), (True, True, True, False)),
    **dict.fromkeys(
        ("same_address", "same_canonical", "own_urls", "same_but_sessions", "own_query"), (True, False, False)
    ),
    "records": (0, 0, 1, 2),
}
_USUAL: dict[type, tuple[Any, ...]] = {bool: (True, False), int: (0, 1, 2), float: (0.0, 0.5, 1.0)}
_KINDS = get_type_hints(Pair)


def some_pair(random: Random, **numbers: Any) -> Pair:
    """numbers: those that are given."""
    drawn = {field: random.choice(_VALUES.get(field, _USUAL[_KINDS[field]])) for field in Pair._fields}
    return Pair(**(drawn | numbers))
