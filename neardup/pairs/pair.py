"""The numbers of a pair of pages: the input of the online rules."""

from typing import NamedTuple


class Pair(NamedTuple):
    """The numbers of a pair of records, computed by `neardup.kernels.pairs`. a is the new page, b the candidate.

    A rule makes a decision of them (`neardup.rules.rule_of`). Comments in `neardup/pairs/pair.py` describe each field.

    A score is LJ = |LCS| / (|A| + |B| - |LCS|) of two tapes (samples of tokens in their order: `neardup.kernels.tape`)
    at the higher of their levels; 0 if the levels differ by two or more. A veto is 0: none; 1: it holds; 2: perhaps,
    because a Bloom filter of the other page is too full to prove that tokens are absent there. Words are tokens that
    are not all digits.
    """

    same_digest: bool
    same_site: bool
    same_hen_site: bool
    b_similarity: int
    c_similarity: int
    simhash64_agree: int
    # 0 of a shell (`neardup.sketch.shells`), which has exact duplicates alone
    tokens_a: int
    tokens_b: int
    # whole pages: bytes of the tapes at the compared level
    tape_a: int
    tape_b: int
    tape_score: float
    # main contents: tokens, and bytes of the tapes at the compared level
    content_tokens_a: int
    content_tokens_b: int
    content_a: int
    content_b: int
    content_score: float
    title_veto: int
    head_veto: int
    #: The URLs have equal tails, query included.
    same_tail: bool
    #: One site, one naming, and equal tails without the query.
    same_place: bool
    #: Equal words of title and heading; on one site, if there are none, equal first words.
    same_naming: bool
    #: Equal titles after folding, punctuation included.
    same_title: bool
    #: Neither title has a word that the other lacks.
    same_words: bool
    #: Each heading has a token that heading and title of the other page lack. 1: a word on both sides; 2: on one side
    #: only tokens with digits.
    heading_veto: int
    # Gaps: runs of tokens on a tape that lie in no window of 3 that both tapes have. Each number is the greater of the
    # two pages', scaled by the level of the tapes; 0 if the levels differ by two or more.
    gaps: int
    #: Tokens with digits in gaps.
    gap_digits: int
    #: Words in gaps beyond 3 for each token with digits of the gap, plus common tokens in another order.
    loose_words: int
    #: A gap is at the end of a text.
    end_differs: bool
    #: All words in gaps.
    gap_words: int
    #: 1: the figures that stand in no form (clock, date, duration, id, counter: `neardup.kernels.forms`) are equal, in
    #: their order; 0: they differ; -1: unknown, since a sketch is of a scheme before version 3 or a page has no tokens.
    same_values: int
    #: The tokens without digits are equal, whatever their order, but for relative times ("3 hours ago"), which tapes
    #: leave out. False where same_values is -1.
    same_rest: bool
    #: One URL is the other with a query, or with a longer query; or percent-encodings and the order of parameters alone
    #: differ (the latter since version 3 of the scheme).
    same_address: bool
    #: Both pages have headings, with equal words and numbers.
    same_heading: bool
    #: The higher level of the two tapes. A tape of level 0 has every token, up to 8 times.
    tape_level: int
    #: Both texts contain their page's own URL, which tapes leave out.
    own_urls: bool
    #: The URLs are equal without parameters of sessions and campaigns.
    same_but_sessions: bool
    #: Two URLs claim one address: rel=canonical, or their own URL if that is missing or a front page. Encodings and the
    #: order of parameters may differ, as in `same_address`.
    same_canonical: bool
    #: Equal titles as written, case and punctuation included.
    same_letters: bool
    #: On one site: a path has words (without digits) that the other path lacks. 1: each path has one that its own page
    #: contains, or one path has one and the other, with equally many segments, has no other word; 2: any path has one,
    #: equally many segments; 3: any path has one, different numbers of segments.
    path_veto: int
    #: Both pages have a word in title or heading.
    named: bool
    #: On one site, the paths differ only in segments that are numbers or ids (UUIDs, hashes). 1: of records; 2: of
    #: records or of releases: the last segment is a file in the folder of such a number, or the path has half of the
    #: words of title and heading; 0 also for a file in a deeper folder.
    records: int
    # Articles: compared only for two hosts (without the label of a view) whose titles or headings share a word; else 0.
    article_tokens_a: int
    article_tokens_b: int
    # bytes of the articles' tapes at article_level, the compared level
    article_a: int
    article_b: int
    article_score: float
    #: Bytes of the longest common stretch of the two tapes, whatever precedes and follows it.
    article_run: int
    article_level: int
    #: On two hosts: words of title and heading that both pages have, without words of the own host.
    common_names: int
    #: On two hosts: such words of the page that has fewer of them.
    fewest_names: int
    #: On one site: equal hosts without the label of a view, and equal users in the path (`neardup.urls.owner_of`).
    same_owner: bool
    #: On one site: 1: each title has a word (without digits) that the other lacks, or one title has such a word that
    #: its page repeats, or that its path has and the other page has in neither title, heading nor path; 2: the first
    #: two for tokens of digits and letters, or each title has a token that the other lacks.
    titles_apart: int
    #: On one site, tapes of level 0: the URLs are equal up to their queries, and the pages differ only in words
    #: (without digits) of their titles that their own queries have, as searches without results do.
    own_query: bool
