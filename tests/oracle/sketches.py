"""Sketches and pair scores in plain Python, written from the definitions: slow, obvious, sharing no code with neardup.

A page is a list of words (lower-case strings), of which the first `title` are its title, with a block number each and
the set of indices that lie in links. Constants are drawn from (seed, use) as the scheme does.
"""

import hashlib
import math
import re
from collections import Counter
from fractions import Fraction
from itertools import accumulate
from urllib.parse import unquote_to_bytes

import xxhash

from tests.oracle.lcs import lcs

M64 = (1 << 64) - 1


def splitmix(x):
    z = (x + 0x9E3779B97F4A7C15) & M64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def constants(seed, what, count):
    start = int.from_bytes(hashlib.blake2b(what.encode(), digest_size=8).digest(), "little") ^ seed
    return [splitmix((start + i * 0x9E3779B97F4A7C15) & M64) for i in range(count)]


def chain(values, seed):
    h = seed
    for value in values:
        h = splitmix(h ^ value)
    return h


def siphash(text, first, second):
    """SipHash-1-3."""

    def turned(x, by):
        return (x << by | x >> 64 - by) & M64

    def stir(v):
        for a, b, x, y in ((0, 1, 2, 3), (2, 1, 0, 3)):
            v[a] = v[a] + v[b] & M64
            v[x] = v[x] + v[y] & M64
            v[b] = turned(v[b], 13 if a == 0 else 17) ^ v[a]
            v[y] = turned(v[y], 16 if a == 0 else 21) ^ v[x]
            v[a] = turned(v[a], 32)

    names = (b"somepseu", b"dorandom", b"lygenera", b"tedbytes")
    v = [key ^ int.from_bytes(name) for key, name in zip((first, second) * 2, names, strict=True)]
    padded = text + bytes(-(len(text) + 1) % 8) + bytes([len(text) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        stir(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        stir(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def fingerprint(text, key):
    """Of bytes, under twelve words: see neardup/sketch/README.md."""
    if len(text) > 15:
        return siphash(text, *key[10:])
    padded = text.ljust(15, b"\0") + bytes([len(text)])
    words = [int.from_bytes(padded[at : at + 4], "little") for at in (0, 4, 8, 12)]
    sums = [(first + sum(map(int.__mul__, factors, words))) & M64 for first, *factors in (key[:5], key[5:10])]
    return splitmix(sums[0] >> 32 << 32 | sums[1] >> 32)


def fingerprints(words, seed):
    key = constants(seed, "token", 12)
    return [fingerprint(word.encode(), key) for word in words]


# algorithm B


def shingles(tokens, seed, k=8):
    factors = [c | 1 for c in constants(seed, "shingle", k)]
    windows = [tokens[i : i + k] for i in range(len(tokens) - k + 1)] if len(tokens) >= k else [tokens]
    if not tokens:
        return set()
    return {splitmix(sum(t * c for t, c in zip(w, factors, strict=False)) & M64) for w in windows}


def minvalues(shingle_set, seed, m=84):
    multipliers = [c | 1 for c in constants(seed, "minvalue multiplier", -(-m // 4))]

    def function(f, s):
        z = s * multipliers[f // 4] & M64
        bits = f"{z ^ z >> 32:064b}"
        piece = 3 - f % 4  # from the left
        return int(bits[16 * piece :] + bits[: 16 * piece], 2)

    return [min(function(f, s) for s in shingle_set) for f in range(m)]


def supershingles(low, count, per, seed):
    return [chain(low[i * per : (i + 1) * per], splitmix((seed + i) & M64)) for i in range(count)]


# algorithm C


def simhash(tokens, seed, words=6, weight=lambda occurrences: occurrences):
    offsets = constants(seed, "simhash", 8)
    sums = [0] * (64 * words)
    for token, occurrences in Counter(tokens).items():
        votes = weight(occurrences)
        for w in range(words):
            projection = splitmix((token + offsets[w]) & M64)
            for bit in range(64):
                sums[64 * w + bit] += votes if projection >> bit & 1 else -votes
    return [sum(1 << bit for bit in range(64) if sums[64 * w + bit] > 0) for w in range(words)]


def log_weight(occurrences):
    return round(8 * (1 + math.log(min(occurrences, 255))))


# tapes


def marked(token, word):
    """splitmix of the token; its top two bits are 00 if the word has a digit, and only then."""
    g = splitmix(token)
    if any(char.isdigit() for char in word):
        return g & ~(3 << 62)
    return g if g >> 62 else g | 1 << 62


def tape(tokens, bytes_max, occurrences_max=8, words=None):
    """(level, bytes). words: those of the tokens, if bytes are to tell which have digits."""
    values = map(splitmix, tokens) if words is None else map(marked, tokens, words)
    seen = Counter()
    eligible = []
    for token, g in zip(tokens, values, strict=True):
        seen[token] += 1
        if seen[token] <= occurrences_max:
            eligible.append(g)
    level = 0
    while sum(g % (1 << level) == 0 for g in eligible) > bytes_max:
        level += 1
    kept = [g for g in eligible if g % (1 << level) == 0]
    return level, bytes((g >> level & 1) | (g >> 57) << 1 for g in kept)


def form_hashes(tokens, words):
    """Of a text without forms: low halves of the hashes of tokens with digits in their order, and of the others."""
    if not words:
        return b""
    figures = [any(char.isdigit() for char in word) for word in words]
    values = chain([token for token, figure in zip(tokens, figures, strict=True) if figure], 0)
    rest = splitmix(sum(token for token, figure in zip(tokens, figures, strict=True) if not figure) & M64)
    return b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in (values, rest))


def shared(a, b):
    """The positions of a that lie in a run of 3 that b has as well."""
    runs = {tuple(b[i : i + 3]) for i in range(len(b) - 2)}
    kept = set()
    for i in range(len(a) - 2):
        if tuple(a[i : i + 3]) in runs:
            kept |= {i, i + 1, i + 2}
    return kept


def strained(a, b):
    """The elements of a that lie in a run of 3 that b has as well."""
    return [a[i] for i in sorted(shared(a, b))]


def at_level(a, b):
    """The bytes of two tapes at the compared level, and by how much they were shifted to the right."""
    (level_a, a), (level_b, b) = a, b
    if level_a == level_b:
        return list(a), list(b), 0
    thinned_a = [x for x in a if not (level_a < level_b and x & 1)]
    thinned_b = [x for x in b if not (level_b < level_a and x & 1)]
    return [x >> 1 for x in thinned_a], [x >> 1 for x in thinned_b], 1


def gaps(a, b):
    """Of two (level, bytes): places where they differ, tokens with digits there, words far from digits or moved;
    whether one of the places is the end; and all words there.
    """
    if abs(a[0] - b[0]) > 1:
        return 0, 0, 0, False, 0
    scale = 1 << max(a[0], b[0])
    a, b, shift = at_level(a, b)
    if min(len(a), len(b)) < 3:
        return 0, 0, 0, False, 0
    found, end = [], False
    for x, y in ((a, b), (b, a)):
        kept = shared(x, y)
        runs = "".join(" " if i in kept else "w" if byte >> 6 - shift & 3 else "d" for i, byte in enumerate(x)).split()
        loose = sum(max(0, run.count("w") - 3 * run.count("d")) for run in runs)
        end |= len(x) - 1 not in kept
        found.append((len(runs), sum(run.count("d") for run in runs), loose, "".join(runs).count("w")))
    places, digits, loose, every = (max(numbers) for numbers in zip(*found, strict=True))
    x, y = strained(a, b), strained(b, a)
    return places, digits * scale, (loose + min(len(x), len(y)) - lcs(x, y)) * scale, end, every * scale


def tape_score(a, b):
    """Of two (level, bytes): bytes of a and of b at the compared level, LJ."""
    if abs(a[0] - b[0]) > 1:
        return len(a[1]), len(b[1]), 0.0
    a, b, _ = at_level(a, b)
    common = lcs(strained(a, b), strained(b, a))
    union = len(a) + len(b) - common
    return len(a), len(b), common / union if union else 0.0


def stretch(a, b):
    """Of two (level, bytes): bytes of the stretch that most of both stands in, and the compared level."""
    level = max(a[0], b[0])
    if abs(a[0] - b[0]) > 1:
        return 0, level
    a, b, _ = at_level(a, b)
    many = [lcs(strained(a, b), strained(b, a))]
    for one, other in ((a, b), (b, a)):
        kept = shared(one, other)
        worth = [1 if i in kept else -3 for i in range(len(one))]
        sums = [0, *accumulate(worth)]
        runs = [(sums[end] - sums[start], -end, start) for end in range(len(sums)) for start in range(end)]
        best, end, start = max(runs, default=(0, 0, 0))
        many.append(worth[start:-end].count(1) if best > 0 else 0)
    return min(many), level


def one_article(a, b):
    """What two sites may have of one article, the words of its headline last."""
    one, other = ({n[0] for n in page["title_names"] if n[2] & 24 and not n[2] & 5} for page in (a, b))
    headline = len(one & other), min(len(one), len(other))
    if not headline[0] or not a.get("article_tokens") or not b.get("article_tokens"):
        return 0, 0, 0, 0, 0.0, 0, 0, *headline
    tapes = [(page["article_level"], page["article_tape"]) for page in (a, b)]
    return a["article_tokens"], b["article_tokens"], *tape_score(*tapes), *stretch(*tapes), *headline


# main content


def parts_of(words, title, blocks):
    """Blocks as lists of indices of their tokens."""
    parts, last = [], None
    for i in range(title, len(words)):
        if blocks[i] != last:
            parts.append([])
            last = blocks[i]
        parts[-1].append(i)
    return parts


def article(words, title, links, blocks):
    """Indices of the article: of all runs of blocks one that is worth most, which ends first, the shortest."""
    parts = parts_of(words, title, blocks)

    def linked(part):
        return sum(i in links for i in part)

    prices = [len(part) - 2 * linked(part) - 6 for part in parts]
    runs = [(first, end) for end in range(1, len(parts) + 1) for first in reversed(range(end))]
    best = max(runs, key=lambda run: sum(prices[slice(*run)]), default=(0, 0))
    if len(parts) > 1 and sum(prices[slice(*best)]) <= 0:
        best = (0, 0)
    return [i for part in parts[slice(*best)] if 3 * linked(part) <= len(part) for i in part]


def content(words, title, links, blocks):
    """Indices of the tokens of the main content."""
    parts = parts_of(words, title, blocks)

    def text_density(j):
        if not 0 <= j < len(parts):
            return Fraction(0)
        width = len(" ".join(words[i] for i in parts[j]))
        return Fraction(len(parts[j])) if width <= 80 else Fraction(80 * len(parts[j]), width)

    def link_density(j):
        if not 0 <= j < len(parts):
            return Fraction(0)
        return Fraction(sum(i in links for i in parts[j]), len(parts[j]))

    def good(j):
        if link_density(j) > Fraction(1, 3):
            return False
        if len(parts) == 1:
            return True
        if link_density(j - 1) <= Fraction(5, 9):
            if text_density(j) <= 9:
                return text_density(j + 1) > 10 or text_density(j - 1) > 4
            return text_density(j + 1) > 0
        return text_density(j + 1) > 11

    return [i for j, part in enumerate(parts) if good(j) for i in part]


# names and filter


def names(tokens, words, indices, most, host_words):
    """[fingerprint, occurrences, flags] of the first distinct tokens at these indices."""
    counts = Counter(tokens)
    found = {}
    for i in indices:
        if tokens[i] in found or len(found) == most:
            continue
        flags = words[i].isdigit() + 2 * any(c.isdigit() for c in words[i]) + 4 * (words[i] in host_words)
        found[tokens[i]] = [splitmix(tokens[i]) % (1 << 48), min(counts[tokens[i]], 255), flags]
    return list(found.values())


def filter_places(fingerprint, bits):
    x, y = fingerprint % (1 << 24), fingerprint >> 24 | 1
    return [(x + i * y) % bits for i in range(4)]


def bloom(tokens, bits_min=512, bits_max=8192):
    distinct = set(tokens)
    if not distinct:
        return b""
    bits = bits_min
    while bits < 8 * len(distinct) and bits < bits_max:
        bits *= 2
    value = 0
    for token in distinct:
        for place in filter_places(splitmix(token) % (1 << 48), bits):
            value |= 1 << place
    return value.to_bytes(bits // 8, "little")


# a whole page


def longest_block(chosen, blocks):
    """Indices of the tokens of the longest block of the main content, the first of equals."""
    runs = []
    for i in chosen:
        if runs and runs[-1][-1] == i - 1 and blocks[i - 1] == blocks[i]:
            runs[-1].append(i)
        else:
            runs.append([i])
    return max(runs, key=len, default=[])


def sketch(words, seed, *, title=0, links=(), blocks=None, host_words=("example", "org"), url=""):
    """Every field of a sketch that follows from the text."""
    blocks = [0] * len(words) if blocks is None else blocks
    tokens = fingerprints(words, seed)
    out = {"tokens": len(tokens), "distinct": len(set(tokens)), "digest": "00" * 16, "head": 0}
    out |= {"supershingles": [0] * 6, "wide": [0] * 7, "content_start": 0}
    chosen = content(words, title, set(links), blocks)
    out["content_tokens"] = len(chosen)
    if tokens:
        data = b"".join(t.to_bytes(8, "little") for t in tokens)
        parts = [xxhash.xxh64_intdigest(data, s).to_bytes(8, "little") for s in constants(seed, "digest", 2)]
        out["digest"] = b"".join(parts).hex()
        seeds = constants(seed, "chain", 4)
        low = minvalues(shingles(tokens, seed), seed)
        out["supershingles"] = supershingles(low, 6, 14, seeds[0])
        out["head"] = chain(tokens[:8], seeds[2])
        out["wide"] = supershingles(low, 7, 2, seeds[1])
        start = [tokens[i] for i in longest_block(chosen, blocks)[:8]]
        out["content_start"] = chain(start, seeds[3]) if start else out["head"]
    out["simhash"] = simhash(tokens, seed)
    out["logtf"] = [x >> shift & 0xFFFFFFFF for x in simhash(tokens, seed, 3, log_weight) for shift in (0, 32)]
    out["tape_level"], out["tape"] = tape(tokens, 500, words=words)
    out["hashes"] = form_hashes(tokens, words)
    out["content_level"], out["content_tape"] = tape([tokens[i] for i in chosen], 250, words=[words[i] for i in chosen])
    found = article(words, title, set(links), blocks)
    if len(found) >= 100:
        out["article_tokens"] = len(found)
        level, data = tape([tokens[i] for i in found], 128, words=[words[i] for i in found])
        out["article_level"], out["article_tape"] = level, data
    out["title_names"] = [[*n[:2], n[2] | 8] for n in names(tokens, words, range(title), 24, host_words)]
    named = dict.fromkeys(i for i in range(title) if words[i] not in words[:i])
    out["naming"] = chain([marked(tokens[i], words[i]) for i in list(named)[:24] if not words[i].isdigit()], 0)
    out["naming"] = out["naming"] or out["head"]
    known = {n[0]: n for n in out["title_names"]}
    for name in path_names(tokens, words, url, 24, seed, host_words) if tokens else ():
        known.setdefault(name[0], name)[2] |= 32
    out["title_names"] = list(known.values())
    out["head_names"] = names(tokens, words, range(min(16, len(words))), 16, host_words)
    out["bloom"] = bloom(tokens)
    return out


# pairs of pages


def vetoes(a, b, same_site):
    """(title veto, head veto) of two sketches: 0 none, 1 holds, 2 would hold were every unprovable token absent."""

    def side(field, page, other, least, but_not, only=0):
        own = (n for n in page[field] if n[1] >= least and not n[2] & but_not and n[2] & only == only)
        answers = {absent(n, other) for n in own}
        return 1 if 1 in answers else 2 if 2 in answers else 0

    def both(field, least, but_not, only=0):
        sides = side(field, a, b, least, but_not, only), side(field, b, a, least, but_not, only)
        return 0 if 0 in sides else max(sides)

    title = 0
    titles = [[n for n in page["title_names"] if n[2] & 8] for page in (a, b)]
    if all(titles):
        if same_site:
            mine, theirs = (
                [n for n in x if not n[2] & 5 and n[0] not in [o[0] for o in y]] for x, y in (titles, titles[::-1])
            )
            title = int(bool(mine and theirs) or any(n[1] >= 2 for n in mine + theirs))
        else:
            title = both("title_names", 2, 4, 8)
    return title, both("head_names", 3, 2 | 4)


def own_names(a, b, only, but_not, there):
    """Names of a with the flag `only`, none of but_not, that are no name of b with a flag of `there`."""
    known = {n[0] for n in b["title_names"] if n[2] & there}
    return {n[0] for n in a["title_names"] if n[2] & only and not n[2] & but_not and n[0] not in known}


def have_names(a, b):
    """Whether both pages have a word in title or heading."""
    return all(any(n[2] & 24 for n in page["title_names"]) for page in (a, b))


def namings(a, b, same_site):
    """Same tail, place and naming, and the veto of headings."""
    naming = a["naming"] == b["naming"] and (same_site or have_names(a, b))
    same = a["tail"] == b["tail"], same_site and a["place"] == b["place"], naming
    words = [own_names(x, y, 16, 4 | 2, 24) for x, y in ((a, b), (b, a))]
    tokens = [own_names(x, y, 16, 4, 24) for x, y in ((a, b), (b, a))]
    return *same, 1 if all(words) else 2 if all(tokens) else 0


def titles_apart(a, b):
    """How two titles of one site name different things: 1 by words, 2 by what has digits."""
    titles = [[n for n in page["title_names"] if n[2] & 8] for page in (a, b)]
    if not all(titles):
        return 0

    def veto(but_not, times):
        known = [{n[0] for n in title} for title in titles]
        own = [
            [n[1] for n in title if not n[2] & but_not and n[0] not in other]
            for title, other in zip(titles, known[::-1], strict=True)
        ]
        return all(own) or max([0, *own[0], *own[1]]) >= times

    every = [{n[0] for n in page["title_names"]} for page in (a, b)]
    in_path = [
        n[0] not in other
        for title, other in zip(titles, every[::-1], strict=True)
        for n in title
        if n[2] & 32 and not n[2] & 6
    ]
    return 1 if veto(4 | 2, 2) or any(in_path) else 2 if veto(4 | 1, 2) or veto(4, 256) else 0


def extends(a, b):
    """Whether one URL is the other with more of a query, or the same in another form."""
    short, long = sorted((a, b), key=len)
    return any(short and long.startswith(short + sign) for sign in "?&;") or (a != b and decoded(a) == decoded(b))


def decoded(url):
    """A URL without the encodings that mean nothing, its parameters in the order of their bytes."""

    def plain(text):
        return re.sub(rb"%([0-9A-F]{2})", lambda found: kept(found[1]), text.encode())

    def kept(digits):
        byte = bytes.fromhex(digits.decode())
        return b"%" + digits if byte in b"/?#&;=+%" else byte

    path, _, query = url.partition("?")
    query, sign, fragment = query.partition("#")
    parameters = sorted(plain(one.replace("+", " ")) for one in re.split("[?&;]", query) if one)
    return plain(path), parameters, sign + fragment


def same_canonical(a, b):
    """Whether the pages of two URLs name one as theirs."""
    named = [page["canonical"] if page["canonical"].count("/", 0, -1) > 2 else page["url"] for page in (a, b)]
    return a["url"] != b["url"] and (named[0] == named[1] or decoded(named[0]) == decoded(named[1]))


def without_sessions(url):
    """A URL without the parameters that name a session or a campaign; what stands before the others is one sign."""
    return "#".join(map(_without_sessions, url.split("#")))


def _without_sessions(url):
    first, *parameters = re.split("[?&;]", url)
    kept = []
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        named = "sess" in name.lower() or name.lower().endswith("sid")
        led = "=" in parameter and re.fullmatch("(?i)utm_.+|.+clid|msclkid", name)
        if not led and not (named and re.fullmatch("(?=.*[0-9])[A-Za-z0-9]{16,}", value)):
            kept.append(parameter)
    return "?".join([first, *kept])


def path_words(url):
    """Words of a URL's path as bytes, last first, case of ASCII letters aside."""
    path = "/".join(url.split("?")[0].split("/")[3:])
    raw = re.sub(b"%([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), path.encode())
    return re.findall(b"[a-z0-9\x80-\xff]+", raw.lower())[::-1]


def path_names(tokens, words, url, most, seed, host_words):
    """Names of the last words of a path, as `names`; of these that are no words of the page no occurrence."""
    key, counts, found = constants(seed, "token", 12), Counter(tokens), {}
    for word in path_words(url)[: 2 * most]:
        text = word.decode("utf-8", "replace")
        token = fingerprint(word, key)
        if token not in found and len(found) < most:
            flags = text.isdigit() + 2 * any(c in "0123456789" for c in text) + 4 * (text in host_words)
            found[token] = [marked(token, text) % (1 << 48), min(counts[token], 255), flags]
    return list(found.values())


def path_own(page, other):
    """What the other's path lacks: 0 nothing, 1 with digits or of the host, 2 other words, 3 one that its page says."""
    there = {n[0] for n in other["title_names"] if n[2] & 32}
    own = [n for n in page["title_names"] if n[2] & 32 and n[0] not in there]
    return max((1 if n[2] & 6 else 3 if n[1] else 2 for n in own), default=0)


def segments(url):
    return url.split("?")[0].split("/")[3:]


def path_veto(a, b):
    """0: none; 1: words that pages say; else 2: words, at one depth, 3: at two; of two pages of one site."""
    sides = sorted((path_own(a, b), path_own(b, a)))
    deep = len(segments(a["url"])) == len(segments(b["url"]))
    if sides == [3, 3] or (sides == [0, 3] and deep):
        return 1
    return 0 if sides[1] < 2 else 2 if deep else 3


def numbers_of_records(segment):
    """Whether a segment is a number or an id: 8 letters and digits, which alternate three times."""
    signs = segment.replace("-", "")
    runs = re.findall("[0-9]+|[A-Za-z]+", signs)
    return bool(re.fullmatch("[0-9]+", segment)) or (len("".join(runs)) == len(signs) >= 8 and len(runs) > 3)


def records(a, b):
    """1: paths differ in whole numbers or ids alone, end with no file, and say less than half of title and heading.

    2: they say half of title and heading, or end with a file in the folder of a number that differs.
    """
    one, other = segments(a["url"]), segments(b["url"])
    unlike = [i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y]
    if len(one) != len(other) or not unlike or max(path_own(a, b), path_own(b, a)) != 1:
        return 0
    if not all(numbers_of_records(each[i]) for each in (one, other) for i in unlike):
        return 0
    if "." in one[-1]:
        return 2 * (sum(not numbers_of_records(each) for each in one[unlike[-1] + 1 :]) == 1)
    words = [n[2] & 32 > 0 for n in a["title_names"] if n[2] & 24 and not n[2] & 6]
    return 1 if 2 * sum(words) < len(words) else 2


def absent(name, other):
    """Whether a page lacks a name: 0, 1, or 2 if its filter is too full to tell."""
    data = other["bloom"]
    if not data:
        return 1
    bits = int.from_bytes(data, "little")
    if bits.bit_count() * 2 > 8 * len(data):
        known = {n[0] for n in other["title_names"] + other["head_names"] if n[1]}
        return 0 if name[0] in known else 2
    return int(not all(bits >> place & 1 for place in filter_places(name[0], 8 * len(data))))


def same_heading(a, b):
    """Whether both pages have headings, of the same names."""
    x, y = ({n[0] for n in page["title_names"] if n[2] & 16} for page in (a, b))
    return bool(x) and x == y


def owner(url):
    """Its host, and the user that its path begins with."""
    folder = "users?|u|people|members?|profiles?"
    found = re.match(
        r"[^:]+://(?:[^/?]*@)?(?:(?:www|m|mobile|amp|print)\.)?(\[[^]]*\]|[^/?:]*)[^/?]*"
        rf"(?:/([@~][^/?#]*|(?:{folder})/[^/?#]+(?=/)))?",
        url,
    )
    return found[1], found[2] or ""


def own_query(a, b):
    """Whether pages under one path differ only in words of their titles that their own queries have."""
    (path, mark, query), (path_b, _, query_b) = (page["url"].partition("?") for page in (a, b))
    if not mark or path != path_b or max(a["tape_level"], b["tape_level"]) or a["tail"] == b["tail"]:
        return False
    pattern = re.compile(b"[0-9A-Za-z\x80-\xff]+|[^0-9A-Za-z\x80-\xff]")
    one, other = (pattern.findall(page["title"].encode()) for page in (a, b))
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    words = []
    for part, text in ((one, query), (other, query_b)):
        joined = b"".join(part).lower()
        decoded = unquote_to_bytes(text.replace("+", " ")).lower()
        whole = rb"(?<![0-9a-z\x80-\xff])" + re.escape(joined) + rb"(?![0-9a-z\x80-\xff])"
        if not joined or len(joined) > 64 or re.search(b"[0-9]", joined) or not re.search(whole, decoded):
            return False
        words.append(sum(bool(re.match(b"[a-z\x80-\xff]", token.lower())) for token in part))
    if not all(words):
        return False
    return but_words(a["tape"], b["tape"], *words)


def but_words(x, y, many, others):
    """Whether x becomes y if the first bytes that differ are replaced, wherever the tapes differ."""
    same = next((i for i, (c, d) in enumerate(zip(x, y, strict=False)) if c != d), None)
    if same is None:
        return False
    one, other = x[same : same + many], y[same : same + others]
    while x and y:
        if x[0] == y[0]:
            x, y = x[1:], y[1:]
        elif x[:many] == one and y[:others] == other and len(one) == many and len(other) == others:
            x, y = x[many:], y[others:]
        else:
            return False
    return not x and not y


def pair(a, b, *, same_site=True, same_hen_site=True):
    """The fields of a pair, in their order."""
    full = a["tokens"] > 0 and b["tokens"] > 0
    agree = [64 - (x ^ y).bit_count() for x, y in zip(a["simhash"], b["simhash"], strict=True)]
    tape_a, tape_b, score = tape_score((a["tape_level"], a["tape"]), (b["tape_level"], b["tape"]))
    content_a, content_b, content_score = tape_score(
        (a["content_level"], a["content_tape"]), (b["content_level"], b["content_tape"])
    )
    title_veto, head_veto = vetoes(a, b, same_site)
    named = namings(a, b, same_site)
    one_host = owner(a["url"])[0] == owner(b["url"])[0]
    return (
        a["digest"] == b["digest"] and full,
        same_site,
        same_hen_site,
        sum(x == y for x, y in zip(a["supershingles"], b["supershingles"], strict=True)) if full else 0,
        sum(agree) if full else 0,
        agree[0] if full else 0,
        a["tokens"],
        b["tokens"],
        tape_a,
        tape_b,
        score,
        a["content_tokens"],
        b["content_tokens"],
        content_a,
        content_b,
        content_score,
        title_veto,
        head_veto,
        *named[:3],
        a["titling"] == b["titling"],
        not own_names(a, b, 8, 4 | 1, 8) and not own_names(b, a, 8, 4 | 1, 8),
        named[3],
        *gaps((a["tape_level"], a["tape"]), (b["tape_level"], b["tape"])),
        int(a["hashes"][:4] == b["hashes"][:4]) if a["hashes"] and b["hashes"] else -1,
        bool(a["hashes"]) and a["hashes"][4:] == b["hashes"][4:] != b"",
        extends(a["url"], b["url"]),
        same_heading(a, b),
        max(a["tape_level"], b["tape_level"]),
        a["own_url"] and b["own_url"],
        same_site and without_sessions(a["url"]) == without_sessions(b["url"]),
        same_canonical(a, b),
        a["title"] == b["title"],
        path_veto(a, b) if same_site else 0,
        have_names(a, b),
        records(a, b) if same_site else 0,
        *((0, 0, 0, 0, 0.0, 0, 0, 0, 0) if same_site and one_host else one_article(a, b)),
        same_site and owner(a["url"]) == owner(b["url"]),
        titles_apart(a, b) if same_site else 0,
        same_site and own_query(a, b),
    )
