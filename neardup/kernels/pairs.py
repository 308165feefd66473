"""The numbers of a pair of sketch records: similarities, tape scores, vetoes."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import ones, quad_at, word_at
from neardup.kernels.likeness import compare_tapes
from neardup.kernels.names import (
    ALL_DIGITS,
    ANY_DIGIT,
    IN_HEADING,
    IN_PATH,
    IN_TITLE,
    NAME_BYTES,
    OWN_HOST,
    fingerprint_at,
    in_filter,
    is_saturated,
)
from neardup.kernels.own_query import differ_in_own_query
from neardup.kernels.record import ARTICLE_HEADER_BYTES, FORMS, OWN_URL, SHELL
from neardup.kernels.same_url import same_url
from neardup.kernels.sketch import HASHES_BYTES
from neardup.kernels.urls import deeper, same_but_numbers, same_but_sessions, same_host, same_owner

U64 = np.uint64
U8 = np.uint8
_ZERO = U64(0)
#: Sets of flags of names. Numba makes a uint64 of `U8 | U8`, and would compile functions for both types.
_IN_EITHER, _NOT_WORDS, _NOT_NAMES = IN_TITLE | IN_HEADING, OWN_HOST | ALL_DIGITS, OWN_HOST | ANY_DIGIT

#: Header fields that `score_pairs` reads, in the order of its argument `at` (their byte offsets in a record).
FIELDS = (
    "digest",
    "site",
    "hen_site",
    "supershingles",
    "simhash",
    "tokens",
    "content_tokens",
    "tape_level",
    "content_level",
    "title_names",
    "head_names",
    "tape_bytes",
    "content_bytes",
    "bloom_bytes",
    "tail",
    "place",
    "naming",
    "titling",
    "url_bytes",
    "site_bytes",
    "title_bytes",
    "canonical_bytes",
    "flags",
    "size",
    "reason_bytes",
)
_DIGEST, _SITE, _HEN_SITE, _B, _C, _TOKENS, _CONTENT_TOKENS = range(7)
_TAPE_LEVEL, _CONTENT_LEVEL, _TITLE, _HEAD, _TAPE, _CONTENT, _BLOOM = range(7, 14)
_TAIL, _PLACE, _NAMING, _TITLING, _URL, _HOST, _TEXT, _CANONICAL, _FLAGS, _SIZE, _ARTICLE = range(14, 25)
#: Columns of the result: the fields of `neardup.pairs.pair.Pair`, in their order.
SAME_DIGEST, SAME_SITE, SAME_HEN_SITE, B_SIMILARITY, C_SIMILARITY, SIMHASH64_AGREE, TOKENS_A, TOKENS_B = range(8)
TAPE_A, TAPE_B, TAPE_SCORE, CONTENT_TOKENS_A, CONTENT_TOKENS_B, CONTENT_A, CONTENT_B, CONTENT_SCORE = range(8, 16)
TITLE_VETO, HEAD_VETO, SAME_TAIL, SAME_PLACE, SAME_NAMING, SAME_TITLE, SAME_WORDS, HEADING_VETO = range(16, 24)
GAPS, GAP_DIGITS, LOOSE_WORDS, END_DIFFERS, GAP_WORDS, SAME_VALUES, SAME_REST, SAME_ADDRESS = range(24, 32)
SAME_HEADING, TAPE_LEVEL, OWN_URLS, SAME_BUT_SESSIONS, SAME_CANONICAL, SAME_LETTERS, PATH_VETO, NAMED = range(32, 40)
RECORDS, ARTICLE_TOKENS_A, ARTICLE_TOKENS_B, ARTICLE_A, ARTICLE_B, ARTICLE_SCORE, ARTICLE_RUN = range(40, 47)
ARTICLE_LEVEL, COMMON_NAMES, FEWEST_NAMES, SAME_OWNER, TITLES_APART, OWN_QUERY, COLUMNS = range(47, 54)
_OWN_URL, _FORMS, _SHELL = U8(OWN_URL), U8(FORMS), U8(SHELL)
#: Least occurrences in a page of a token of its title, and of its head, that counts as a name for a veto.
_TITLE_TWICE, _HEAD_THRICE = 2, 3
#: Whether another page has a token.
_PRESENT, _ABSENT, _UNPROVABLE = 0, 1, 2


@lean_kernel
def half_at(buf, at):
    """The little-endian uint16 at buf[at], int64."""
    return np.int64(buf[at]) | (np.int64(buf[at + 1]) << 8)


@lean_kernel
def _absent(buf, fingerprint, filter_at, filter_size, saturated, names_at, names):
    """Whether a page has a token: _PRESENT (or possibly), _ABSENT, or _UNPROVABLE if the filter is saturated."""
    if not saturated:
        if filter_size > 0 and in_filter(fingerprint, buf, filter_at, filter_size):
            return _PRESENT
        return _ABSENT
    for j in range(names):
        if fingerprint_at(buf, names_at + j * NAME_BYTES) == fingerprint and buf[names_at + j * NAME_BYTES + 6]:
            return _PRESENT
    return _UNPROVABLE


@lean_kernel
def _own_name(buf, at, names, count_min, only, but_not, filter_at, filter_size, saturated, names_at, other_names):
    """Whether the other page lacks one of the names at buf[at].

    Counted are names with all flags of `only`, no flag of but_not, and at least count_min occurrences.
    -> _ABSENT if one is proved absent; else _UNPROVABLE if a saturated filter leaves one open; else _PRESENT.
    """
    answer = _PRESENT
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):
        if np.int64(buf[j + 6]) < count_min or buf[j + 7] & but_not or buf[j + 7] & only != only:
            continue
        fingerprint = fingerprint_at(buf, j)
        found = _absent(buf, fingerprint, filter_at, filter_size, saturated, names_at, other_names)
        if found == _ABSENT:
            return found
        if found == _UNPROVABLE:
            answer = found
    return answer


@lean_kernel
def _both(a, b):
    if a == _PRESENT or b == _PRESENT:
        return _PRESENT
    return _ABSENT if a == _ABSENT and b == _ABSENT else _UNPROVABLE


@lean_kernel
def _title_only(buf, at, names, but_not, other_at, other_names):
    """The greatest number of occurrences of a title token at buf[at] that the other title lacks; 0 if there is none.

    but_not: flags of tokens that do not count.
    """
    most = 0
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):
        if not buf[j + 7] & IN_TITLE or buf[j + 7] & but_not or np.int64(buf[j + 6]) <= most:
            continue
        fingerprint = fingerprint_at(buf, j)
        for k in range(other_at, other_at + other_names * NAME_BYTES, NAME_BYTES):
            if buf[k + 7] & IN_TITLE and fingerprint_at(buf, k) == fingerprint:
                break
        else:
            most = int(buf[j + 6])
    return most


@lean_kernel
def _same_site_titles(buf, a, a_names, b, b_names, but_not):
    """Title veto for two pages of one site, 0 or 1.

    It holds if each title has a word that the other lacks, or if one has such a word that its page repeats.
    but_not: flags of tokens that are no words.
    """
    mine = _title_only(buf, a, a_names, but_not, b, b_names)
    theirs = _title_only(buf, b, b_names, but_not, a, a_names)
    return (mine > 0 and theirs > 0) or mine >= _TITLE_TWICE or theirs >= _TITLE_TWICE


@lean_kernel
def _named_apart(buf, at, names, other_at, other_names):
    """Whether title and path of a page have a word that title, heading and path of the other page lack."""
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):
        if not buf[j + 7] & IN_TITLE or not buf[j + 7] & IN_PATH or buf[j + 7] & _NOT_NAMES:
            continue
        fingerprint = fingerprint_at(buf, j)
        for k in range(other_at, other_at + other_names * NAME_BYTES, NAME_BYTES):
            if fingerprint_at(buf, k) == fingerprint:
                break
        else:
            return True
    return False


@lean_kernel
def _differs(buf, at, names, only, but_not, other_at, other_names, there):
    """Whether one of the names at buf[at] is missing among the other page's names with a flag of `there`.

    Counted are names with the flag `only` and no flag of but_not.
    """
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):
        if not buf[j + 7] & only or buf[j + 7] & but_not:
            continue
        fingerprint = fingerprint_at(buf, j)
        for k in range(other_at, other_at + other_names * NAME_BYTES, NAME_BYTES):
            if buf[k + 7] & there and fingerprint_at(buf, k) == fingerprint:
                break
        else:
            return True
    return False


@lean_kernel
def _heading_veto(buf, a, a_names, b, b_names):
    """Heading veto: each heading has a token that the other page's heading and title lack.

    -> 0 no veto; 1 a word on both sides; 2 one side has only tokens with digits.
    """
    if not (
        _differs(buf, a, a_names, IN_HEADING, OWN_HOST, b, b_names, _IN_EITHER)
        and _differs(buf, b, b_names, IN_HEADING, OWN_HOST, a, a_names, _IN_EITHER)
    ):
        return 0
    return (
        1
        if _differs(buf, a, a_names, IN_HEADING, _NOT_NAMES, b, b_names, _IN_EITHER)
        and _differs(buf, b, b_names, IN_HEADING, _NOT_NAMES, a, a_names, _IN_EITHER)
        else 2
    )


@lean_kernel
def _own_path(buf, at, names, other_at, other_names):
    """Words of a page's path that the other page's path lacks -> the highest class that occurs.

    0 none; 1 words with digits or of the host; 2 other words; 3 other words that occur in the page's text."""
    most = 0
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):
        if not buf[j + 7] & IN_PATH:
            continue
        fingerprint = fingerprint_at(buf, j)
        for k in range(other_at, other_at + other_names * NAME_BYTES, NAME_BYTES):
            if buf[k + 7] & IN_PATH and fingerprint_at(buf, k) == fingerprint:
                break
        else:
            most = max(most, 1 if buf[j + 7] & _NOT_NAMES else (3 if buf[j + 6] else 2))
    return most


@lean_kernel
def _path_veto(mine, theirs, deep):
    """See `Pair.path_veto`.

    mine, theirs: results of `_own_path`; deep: whether both paths have equally many segments.
    """
    least, most = min(mine, theirs), max(mine, theirs)
    if least == 3 or (least == 0 and most == 3 and deep):
        return 1
    if most < 2:
        return 0
    return 2 if deep else 3


@lean_kernel
def _named_by_path(buf, at, names):
    """Whether the path of the URL has at least half of the words (without digits) of title and heading."""
    balance = 0
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):
        if buf[j + 7] & _IN_EITHER and not buf[j + 7] & _NOT_NAMES:
            balance += 1 if buf[j + 7] & IN_PATH else -1
    return balance >= 0


@lean_kernel
def _has(buf, at, names, flag):
    """Whether one of the names at buf[at] has this flag."""
    for j in range(at, at + names * NAME_BYTES, NAME_BYTES):  # noqa: SIM110  (numba has no generator expressions)
        if buf[j + 7] & flag:
            return True
    return False


@lean_kernel
def _same_heading(buf, a, a_names, b, b_names):
    """Whether both pages have headings with the same words and numbers."""
    return (
        _has(buf, a, a_names, IN_HEADING)
        and _has(buf, b, b_names, IN_HEADING)
        and not _differs(buf, a, a_names, IN_HEADING, U8(0), b, b_names, IN_HEADING)
        and not _differs(buf, b, b_names, IN_HEADING, U8(0), a, a_names, IN_HEADING)
    )


@lean_kernel
def _common_names(buf, a, a_names, b, b_names):
    """(words of title and heading that both pages have, words of the page with fewer of them).

    Words of the own host and numbers do not count.
    """
    both = mine = theirs = 0
    for k in range(b, b + b_names * NAME_BYTES, NAME_BYTES):
        theirs += (buf[k + 7] & _IN_EITHER) != 0 and not buf[k + 7] & _NOT_WORDS
    for j in range(a, a + a_names * NAME_BYTES, NAME_BYTES):
        if not buf[j + 7] & _IN_EITHER or buf[j + 7] & _NOT_WORDS:
            continue
        mine += 1
        fingerprint = fingerprint_at(buf, j)
        for k in range(b, b + b_names * NAME_BYTES, NAME_BYTES):
            if buf[k + 7] & _IN_EITHER and not buf[k + 7] & _NOT_WORDS:
                both += fingerprint_at(buf, k) == fingerprint
    return both, min(mine, theirs)


@lean_kernel
def _extends(buf, a, a_size, b, b_size):
    """Whether one of the URLs at buf[a], buf[b] is the other one with a query, or with a longer query."""
    size = min(a_size, b_size)
    if size == 0 or a_size == b_size:
        return False
    for i in range(size):
        if buf[a + i] != buf[b + i]:
            return False
    more = buf[a + size] if a_size > b_size else buf[b + size]
    return more == U8(ord("?")) or more == U8(ord("&")) or more == U8(ord(";"))


@lean_kernel
def _address(buf, url, at, record):
    """(start, bytes) of the URL that a page claims: its rel=canonical, or its own URL at buf[url].

    A canonical URL that is a front page does not count: sites set it on all pages by mistake.
    """
    own = half_at(buf, record + at[_URL])
    start = url + own + half_at(buf, record + at[_HOST]) + half_at(buf, record + at[_TEXT])
    size = half_at(buf, record + at[_CANONICAL])
    slashes = 0
    for i in range(size - 1):
        slashes += buf[start + i] == U8(ord("/"))
    if slashes < 3:
        return url, own
    return start, size


@lean_kernel
def _same_canonical(buf, url_a, a, url_b, b, at, decoded):
    """Whether the records at buf[a] and buf[b] claim the same URL. decoded: also one that is written in another way."""
    size_a, size_b = half_at(buf, a + at[_URL]), half_at(buf, b + at[_URL])
    if equal_bytes(buf, url_a, size_a, url_b, size_b):
        return False
    start_a, size_a = _address(buf, url_a, at, a)
    start_b, size_b = _address(buf, url_b, at, b)
    if equal_bytes(buf, start_a, size_a, start_b, size_b):
        return True
    return decoded and same_url(buf, start_a, start_a + size_a, start_b, start_b + size_b)


@lean_kernel
def equal_bytes(buf, a, a_size, b, b_size):
    i = 0
    while i < min(a_size, b_size) and buf[a + i] == buf[b + i]:
        i += 1
    return i == a_size == b_size


@lean_kernel
def _compare_articles(buf, a, b, at, first, room, out):
    """Compare the articles of two records, if both have one -> columns ARTICLE_* of out."""
    size_a, size_b = half_at(buf, a + at[_ARTICLE]), half_at(buf, b + at[_ARTICLE])
    if min(size_a, size_b) <= ARTICLE_HEADER_BYTES:
        return
    start_a, start_b = a + quad_at(buf, a + at[_SIZE]) - size_a, b + quad_at(buf, b + at[_SIZE]) - size_b
    out[ARTICLE_TOKENS_A], out[ARTICLE_TOKENS_B] = quad_at(buf, start_a), quad_at(buf, start_b)
    tape_a, tape_b = start_a + ARTICLE_HEADER_BYTES, start_b + ARTICLE_HEADER_BYTES
    level_a, level_b = np.int64(buf[tape_a - 1]), np.int64(buf[tape_b - 1])
    size_a, size_b = size_a - ARTICLE_HEADER_BYTES, size_b - ARTICLE_HEADER_BYTES
    columns = ARTICLE_A, ARTICLE_SCORE, -1, ARTICLE_RUN
    compare_tapes(buf, tape_a, size_a, level_a, tape_b, size_b, level_b, first, room, out, *columns)


@lean_kernel
def _values_at(buf, record, at, header):
    """The end of the tape of the record at buf[record], where the hashes of values and words begin, if it has them."""
    size = half_at(buf, record + at[_TAPE])
    if buf[record + at[_FLAGS]] & _FORMS:
        size = max(size - HASHES_BYTES, 0)
    return record + header + size


@lean_kernel
def _tokens_at(buf, record, at):
    """The tokens of the record at buf[record]; none of a shell, whose words are not those of its page."""
    return np.int64(0) if buf[record + at[_FLAGS]] & _SHELL else quad_at(buf, record + at[_TOKENS])


@lean_kernel
def score_pair(buf, a, b, at, header, scratch, out):
    """The numbers of the pair of records at buf[a] and buf[b] -> out float64[COLUMNS]; see `score_pairs`."""
    tape, content, article, room = scratch
    tokens_a, tokens_b = _tokens_at(buf, a, at), _tokens_at(buf, b, at)
    low, high = word_at(buf, a + at[_DIGEST]), word_at(buf, a + at[_DIGEST] + 8)
    same = low == word_at(buf, b + at[_DIGEST]) and high == word_at(buf, b + at[_DIGEST] + 8)
    same_site = word_at(buf, a + at[_SITE]) == word_at(buf, b + at[_SITE])
    out[SAME_DIGEST] = same and (low | high) != _ZERO
    out[SAME_SITE] = same_site
    out[SAME_HEN_SITE] = word_at(buf, a + at[_HEN_SITE]) == word_at(buf, b + at[_HEN_SITE])
    b_similarity = c_similarity = first64 = 0
    if tokens_a > 0 and tokens_b > 0:
        for i in range(6):
            b_similarity += word_at(buf, a + at[_B] + 8 * i) == word_at(buf, b + at[_B] + 8 * i)
            agree = 64 - ones(word_at(buf, a + at[_C] + 8 * i) ^ word_at(buf, b + at[_C] + 8 * i))
            c_similarity += agree
            if i == 0:
                first64 = agree
    out[B_SIMILARITY], out[C_SIMILARITY], out[SIMHASH64_AGREE] = b_similarity, c_similarity, first64
    out[TOKENS_A], out[TOKENS_B] = tokens_a, tokens_b

    tape_a, tape_b = a + header, b + header
    flags_a, flags_b = buf[a + at[_FLAGS]], buf[b + at[_FLAGS]]
    values_a, values_b = _values_at(buf, a, at, header), _values_at(buf, b, at, header)
    size_a, size_b = values_a - tape_a, values_b - tape_b
    level_a, level_b = np.int64(buf[a + at[_TAPE_LEVEL]]), np.int64(buf[b + at[_TAPE_LEVEL]])
    compare_tapes(buf, tape_a, size_a, level_a, tape_b, size_b, level_b, tape, room, out, TAPE_A, TAPE_SCORE, GAPS, -1)
    whole, level = (tape_a, tape_a + size_a, tape_b, tape_b + size_b), max(level_a, level_b)
    out[SAME_VALUES], out[SAME_REST] = -1, 0
    if flags_a & flags_b & _FORMS:
        out[SAME_VALUES] = quad_at(buf, values_a) == quad_at(buf, values_b)
        out[SAME_REST] = quad_at(buf, values_a + 4) == quad_at(buf, values_b + 4)
    out[CONTENT_TOKENS_A] = quad_at(buf, a + at[_CONTENT_TOKENS])
    out[CONTENT_TOKENS_B] = quad_at(buf, b + at[_CONTENT_TOKENS])
    tape_a += half_at(buf, a + at[_TAPE])
    tape_b += half_at(buf, b + at[_TAPE])
    size_a, size_b = half_at(buf, a + at[_CONTENT]), half_at(buf, b + at[_CONTENT])
    level_a, level_b = np.int64(buf[a + at[_CONTENT_LEVEL]]), np.int64(buf[b + at[_CONTENT_LEVEL]])
    at_columns = CONTENT_A, CONTENT_SCORE, -1, -1
    compare_tapes(buf, tape_a, size_a, level_a, tape_b, size_b, level_b, content, room, out, *at_columns)

    names_a, names_b = tape_a + size_a, tape_b + size_b
    title_a, title_b = np.int64(buf[a + at[_TITLE]]), np.int64(buf[b + at[_TITLE]])
    head_a, head_b = np.int64(buf[a + at[_HEAD]]), np.int64(buf[b + at[_HEAD]])
    all_a, all_b = title_a + head_a, title_b + head_b
    filter_a, filter_b = names_a + all_a * NAME_BYTES, names_b + all_b * NAME_BYTES
    bytes_a, bytes_b = half_at(buf, a + at[_BLOOM]), half_at(buf, b + at[_BLOOM])
    full_a, full_b = is_saturated(buf, filter_a, bytes_a), is_saturated(buf, filter_b, bytes_b)
    out[TITLE_VETO] = out[TITLES_APART] = 0
    if _has(buf, names_a, title_a, IN_TITLE) and _has(buf, names_b, title_b, IN_TITLE):
        if same_site:
            out[TITLE_VETO] = _same_site_titles(buf, names_a, title_a, names_b, title_b, _NOT_WORDS)
            if (
                _same_site_titles(buf, names_a, title_a, names_b, title_b, _NOT_NAMES)
                or _named_apart(buf, names_a, title_a, names_b, title_b)
                or _named_apart(buf, names_b, title_b, names_a, title_a)
            ):
                out[TITLES_APART] = 1
            elif out[TITLE_VETO] != 0.0 or (
                _differs(buf, names_a, title_a, IN_TITLE, OWN_HOST, names_b, title_b, IN_TITLE)
                and _differs(buf, names_b, title_b, IN_TITLE, OWN_HOST, names_a, title_a, IN_TITLE)
            ):
                out[TITLES_APART] = 2
        else:
            out[TITLE_VETO] = _both(
                _own_name(
                    *(buf, names_a, title_a, _TITLE_TWICE, IN_TITLE, OWN_HOST),
                    *(filter_b, bytes_b, full_b, names_b, all_b),
                ),
                _own_name(
                    *(buf, names_b, title_b, _TITLE_TWICE, IN_TITLE, OWN_HOST),
                    *(filter_a, bytes_a, full_a, names_a, all_a),
                ),
            )
    at_a, at_b = names_a + title_a * NAME_BYTES, names_b + title_b * NAME_BYTES
    out[HEAD_VETO] = _both(
        _own_name(buf, at_a, head_a, _HEAD_THRICE, U8(0), _NOT_NAMES, filter_b, bytes_b, full_b, names_b, all_b),
        _own_name(buf, at_b, head_b, _HEAD_THRICE, U8(0), _NOT_NAMES, filter_a, bytes_a, full_a, names_a, all_a),
    )
    out[SAME_TAIL] = word_at(buf, a + at[_TAIL]) == word_at(buf, b + at[_TAIL])
    out[SAME_PLACE] = same_site and word_at(buf, a + at[_PLACE]) == word_at(buf, b + at[_PLACE])
    naming = word_at(buf, a + at[_NAMING])
    out[NAMED] = _has(buf, names_a, title_a, _IN_EITHER) and _has(buf, names_b, title_b, _IN_EITHER)
    # Within a site, first words name pages that have no other name. Between two sites they mean nothing.
    out[SAME_NAMING] = naming == word_at(buf, b + at[_NAMING]) and (same_site or out[NAMED] != 0.0)
    out[SAME_TITLE] = word_at(buf, a + at[_TITLING]) == word_at(buf, b + at[_TITLING])
    out[SAME_WORDS] = not (
        _differs(buf, names_a, title_a, IN_TITLE, _NOT_WORDS, names_b, title_b, IN_TITLE)
        or _differs(buf, names_b, title_b, IN_TITLE, _NOT_WORDS, names_a, title_a, IN_TITLE)
    )
    out[HEADING_VETO] = _heading_veto(buf, names_a, title_a, names_b, title_b)
    url_a, url_b = half_at(buf, a + at[_URL]), half_at(buf, b + at[_URL])
    start_a, start_b = filter_a + bytes_a, filter_b + bytes_b
    # Addresses are decoded since version 3 of the scheme: verdicts on earlier sketches stay as they are.
    decoded = flags_a & flags_b & _FORMS != 0
    out[SAME_ADDRESS] = _extends(buf, start_a, url_a, start_b, url_b)
    if decoded and not equal_bytes(buf, start_a, url_a, start_b, url_b):
        out[SAME_ADDRESS] = out[SAME_ADDRESS] or same_url(buf, start_a, start_a + url_a, start_b, start_b + url_b)
    out[SAME_HEADING] = _same_heading(buf, names_a, title_a, names_b, title_b)
    out[TAPE_LEVEL] = level
    out[OWN_URLS] = flags_a & flags_b & _OWN_URL != 0
    out[SAME_BUT_SESSIONS] = same_site and same_but_sessions(buf, start_a, start_a + url_a, start_b, start_b + url_b)
    out[SAME_CANONICAL] = _same_canonical(buf, start_a, a, start_b, b, at, decoded)
    out[PATH_VETO] = out[RECORDS] = 0
    if same_site:
        end_a, end_b = start_a + url_a, start_b + url_b
        mine, theirs = (
            _own_path(buf, names_a, title_a, names_b, title_b),
            _own_path(buf, names_b, title_b, names_a, title_a),
        )
        if mine > 1 or theirs > 1:
            out[PATH_VETO] = _path_veto(mine, theirs, deeper(buf, start_a, end_a, start_b, end_b) == 0)
        elif mine == 1 or theirs == 1:
            numbered = same_but_numbers(buf, start_a, end_a, start_b, end_b)
            out[RECORDS] = 2 if numbered == 1 and _named_by_path(buf, names_a, title_a) else numbered
    text_a, text_b = start_a + url_a + half_at(buf, a + at[_HOST]), start_b + url_b + half_at(buf, b + at[_HOST])
    out[SAME_LETTERS] = equal_bytes(buf, text_a, half_at(buf, a + at[_TEXT]), text_b, half_at(buf, b + at[_TEXT]))
    out[OWN_QUERY] = 0
    if same_site and level == 0 and out[SAME_TAIL] == 0.0:
        out[OWN_QUERY] = differ_in_own_query(
            buf,
            whole,
            (start_a, start_a + url_a, start_b, start_b + url_b),
            (text_a, text_a + half_at(buf, a + at[_TEXT]), text_b, text_b + half_at(buf, b + at[_TEXT])),
        )
    out[ARTICLE_TOKENS_A:SAME_OWNER] = 0
    out[SAME_OWNER] = same_site and same_owner(buf, start_a, start_a + url_a, start_b, start_b + url_b)
    one_host = out[SAME_OWNER] != 0.0  # most pairs of one site: no second look at their URLs
    if same_site and not one_host:
        one_host = same_host(buf, start_a, start_a + url_a, start_b, start_b + url_b)
    if not one_host:
        out[COMMON_NAMES], out[FEWEST_NAMES] = _common_names(buf, names_a, title_a, names_b, title_b)
        # last, because most pairs of two hosts have no word of a headline in common
        if out[COMMON_NAMES] > 0:
            _compare_articles(buf, a, b, at, article, room, out)


@lean_kernel
def score_pairs(buf, a, b, at, header, scratch, out):
    """Score the pairs of records at byte offsets a[i], b[i] of buf (uint8) -> out float64[pairs, COLUMNS].

    The columns are the fields of `neardup.pairs.pair.Pair` in their order, booleans as 0 or 1. The similarities B, C
    and 64-bit of pages without tokens are 0, whatever their bits.
    at int64[25]: byte offsets of FIELDS in a record. header: bytes of a record's header.
    scratch: see `neardup.pairs.scoring.pair_scratch`; valid for one buf only. Adjacent pairs with the same a are
    faster.
    """
    for i in range(len(a)):
        score_pair(buf, a[i], b[i], at, header, scratch, out[i])
