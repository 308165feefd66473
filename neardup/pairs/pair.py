"""What the online rules see of two pages."""

from typing import NamedTuple


class Pair(NamedTuple):
    """The numbers of a pair, made by `neardup.kernels.pairs` from two records: a the new page, b the candidate.

    tape_score and content_score are LJ = |LCS| / (|A| + |B| - |LCS|), 0 if two levels apart. tape_a, tape_b, content_a,
    content_b: bytes at the compared level. A veto is 0: none; 1: holds; 2: would hold were every token absent that a
    saturated filter cannot prove absent.

    What pages call themselves: same_tail: their URLs end alike, query included; same_place: alike without it, on one
    site and under one naming; same_naming: the words of title and heading are equal, those of digits alone left out,
    or on one site, where there are none, the first words; same_title: the titles are equal, punctuation included;
    same_words: no title has a word that the other lacks. heading_veto: each heading has a token that is neither in the
    other's heading nor title; 1: a word, 2: at least on one side none without digits.

    gaps: where the texts differ, on the tapes: runs of tokens that lie in no common run of 3. gap_digits:
    tokens with digits in them; loose_words: words in them beyond 3 for each token with digits of the same gap, as in
    time stamps, and tokens of common runs in another order. Of the page that has more, and scaled up by the tapes'
    level. end_differs: one of them is the end of a text; gap_words: all words in them. All are 0 of tapes two levels
    apart.

    same_address: one URL is the other with more of a query. same_canonical: the pages of two URLs want to go by one:
    rel=canonical, or their own where that is missing or a front page. same_heading: both have headings, of the same
    words and numbers.
    tape_level: the greater of the two; at 0 tapes hold every word, up to 8 times. own_urls: both texts have their
    page's own URL, which tapes leave out. same_but_sessions: the URLs are
    equal but for parameters that name a session, or a campaign that led there. same_letters: the titles are equal as
    they are written, case and signs included. named: both
    pages have a word in title or heading.

    path_veto: of pages of one site; words without digits that one URL's path has and the other's lacks. 1: each path
    has one that its own page says, or one path has, and the other, as deep, lacks nothing; else 2: any path has one,
    and they are as deep; 3: they are not. records: on one site the paths differ in nothing but segments that are digits
    alone, and fewer than half of the words of title and heading, those with digits left out, stand in the path.

    Of two sites alone, else 0: common_names: words of title and heading that both pages have, those of digits alone and
    of the own host left out; fewest_names: how many the page with fewer of them has. If there are any, and both pages
    have an article: article_tokens_a, article_tokens_b: its tokens; article_a, article_b: bytes of its tape at
    article_level, the level compared; article_score: LJ of both; article_run: bytes of the stretch that both have most
    of in common and in one order, whatever stands before and after it.

    same_owner: on one site the hosts are equal, "www." left out, and so are the users that the paths name, if any: see
    `neardup.page.owner_of`.

    titles_apart: of two titles of one site: 1: each has a word without digits that the other lacks, or one has one that
    its page repeats; else 2: the same of tokens with digits and letters, or each has a token that the other lacks.
    """

    same_digest: bool
    same_site: bool
    same_hen_site: bool
    b_similarity: int
    c_similarity: int
    simhash64_agree: int
    tokens_a: int
    tokens_b: int
    tape_a: int
    tape_b: int
    tape_score: float
    content_tokens_a: int
    content_tokens_b: int
    content_a: int
    content_b: int
    content_score: float
    title_veto: int
    head_veto: int
    same_tail: bool
    same_place: bool
    same_naming: bool
    same_title: bool
    same_words: bool
    heading_veto: int
    gaps: int
    gap_digits: int
    loose_words: int
    end_differs: bool
    gap_words: int
    same_address: bool
    same_heading: bool
    tape_level: int
    own_urls: bool
    same_but_sessions: bool
    same_canonical: bool
    same_letters: bool
    path_veto: int
    named: bool
    records: bool
    article_tokens_a: int
    article_tokens_b: int
    article_a: int
    article_b: int
    article_score: float
    article_run: int
    article_level: int
    common_names: int
    fewest_names: int
    same_owner: bool
    titles_apart: int
