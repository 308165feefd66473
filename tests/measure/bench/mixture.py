"""Pages for the curve of posted keys: what index keys are made of, without the pages themselves.

Generated pages are functions of (seed, number): sites of very different sizes, each with a template around its pages'
own words, titles that tell pages apart or do not, and of three pages in ten an earlier one again, changed a little or
not at all. What is kept of a page is what any choice of keys can be made from: minvalues of its shingles, and a log-tf
simhash of twice the bits that records have. They are computed here, plainly, as algorithms B and C say; their functions
are others than a scheme's, with the same chances.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neardup.kernels import kernel
from neardup.kernels.mix import mix
from neardup.sketch.one_page_simhash import LOG_WEIGHTS

U64 = np.uint64
VOCABULARY = 50_000
SITES = 20_000
#: Tokens of one generated page at most.
TOKENS_MAX = 8192
SHINGLE = 8
BLOCKS = 12
#: What becomes of a repeated page: share of words replaced one by one; a run of words replaced; words added at the end.
#: Of the last the first words are others, too.
CHANGES = (
    "1% of the words", "3% of the words", "6% of the words", "10% of the words", "14% of the words",
    "a run of 10%", "25% more", "3% of the words and the first 10",
)  # fmt: skip
_SHARES = np.array([0.01, 0.03, 0.06, 0.10, 0.14, 0.10, 0.25, 0.03])
EXACT = len(CHANGES)
_RUN, _MORE, _FIRST = 5, 6, 7
#: Of the first pages none is a repeat.
_NEW_PAGES = 1000
_PART = 2000


@kernel
def _unit(word):
    """A number in [0, 1) of a random word."""
    return np.float64(word >> U64(11)) * 2.0**-53


@kernel
def _draw(base, number):
    """The random word number `number` of a stream."""
    return mix(base + U64(number) * U64(0x9E3779B97F4A7C15))


@kernel
def _word(random):
    """A word by its rank: frequencies go as 1 / rank."""
    return np.uint32(np.exp(_unit(random) * np.log(np.float64(VOCABULARY))))


@kernel
def origin(seed, number):
    """(number of the page that this one repeats, how it was changed); (-1, -1) for a new page."""
    at = number
    base = mix(seed ^ mix(U64(number)))
    share = _unit(_draw(base, 1))
    if number < _NEW_PAGES or share >= 0.30:
        return np.int64(-1), np.int64(-1)
    change = np.int64(EXACT) if share < 0.05 else np.int64(_unit(_draw(base, 2)) * EXACT)
    for turn in range(32):
        at = np.int64(_unit(_draw(base, 3 + turn)) * number)
        if at < _NEW_PAGES or _unit(_draw(mix(seed ^ mix(U64(at))), 1)) >= 0.30:
            return at, change
    return np.int64(-1), np.int64(-1)


@kernel
def site_of(seed, number):
    """The page's site: the largest has 3.7% of all pages."""
    return np.int64(SITES * _unit(_draw(mix(seed ^ mix(U64(number))), 64)) ** 3)


@kernel
def new_page(seed, number, out):
    """Words of a new page -> (how many, ends of the title, the front, the body). out uint32[TOKENS_MAX]."""
    base = mix(seed ^ mix(U64(number)))
    site = mix(seed + U64(0x51) * U64(1 + site_of(seed, number)))
    around = np.int64(10.0 * np.exp(_unit(_draw(site, 1)) * np.log(40.0)))
    usual = 25.0 * np.exp(_unit(_draw(site, 2)) * np.log(48.0))
    bell = _unit(_draw(base, 65)) + _unit(_draw(base, 66)) + _unit(_draw(base, 67)) - 1.5
    body = min(np.int64(TOKENS_MAX - 1024), 10 + np.int64(usual * np.exp(1.2 * bell)))
    telling = _unit(_draw(site, 3)) < 0.5
    n = 0
    for i in range(8):
        out[n] = _word(_draw(base if telling and i < 5 else site, 100 + i))
        n += 1
    title = n
    for i in range(around * 6 // 10):
        out[n] = _word(_draw(site, 200 + i))
        n += 1
    front = n
    for i in range(body):
        out[n] = _word(_draw(base, 200 + i))
        n += 1
    rest = around - around * 6 // 10
    for i in range(rest):
        out[n] = _word(_draw(site, 1000 + i))
        n += 1
    return n, title, front, n - rest


@kernel
def page(seed, number, out):
    """Words of any page, as `new_page`, and (number of the page that it repeats, how)."""
    at, change = origin(seed, number)
    n, title, front, end = new_page(seed, number if at < 0 else at, out)
    if at < 0 or change == EXACT:
        return n, title, front, end, at, change
    base = mix(seed ^ mix(U64(number)))
    share = _SHARES[change]
    if change == _RUN:
        run = np.int64(share * n)
        start = np.int64(_unit(_draw(base, 70)) * (n - run))
        for i in range(start, start + run):
            out[i] = _word(_draw(base, 5000 + i))
    elif change == _MORE:
        more = min(np.int64(share * n), np.int64(TOKENS_MAX) - n)
        for i in range(more):
            out[n + i] = _word(_draw(base, 5000 + i))
        n += more
    else:
        for i in range(n):
            if _unit(_draw(base, 5000 + i)) < share or (change == _FIRST and i < 10):
                out[i] = _word(_draw(base, 20000 + i))
    return n, title, front, end, at, change


@kernel
def keys_of(fp, n, multipliers, factors, offsets, weights, shingles, order, sums, low, blocks):
    """Minvalues and log-tf simhash of n tokens -> low uint32[functions], blocks uint32[12].

    fp uint64[>= n]; multipliers uint64[functions] odd; factors uint64[8]; offsets uint64[6]; weights int32[256].
    Scratch: shingles uint64[>= n], order uint64[>= n], sums int32[64].
    """
    many = max(1, n - SHINGLE + 1)
    for i in range(many):
        total = U64(0)
        for j in range(min(SHINGLE, n)):
            total += fp[i + j] * factors[j]
        shingles[i] = mix(total)
    for f in range(len(multipliers)):
        least = ~U64(0)
        for i in range(many):
            y = shingles[i] * multipliers[f]
            y ^= y >> U64(32)
            least = min(least, y)
        low[f] = np.uint32(least & U64(0xFFFFFFFF))
    order[:n] = fp[:n]
    sorted_tokens = np.sort(order[:n])
    for w in range(len(offsets)):
        sums[:] = 0
        i = 0
        while i < n:
            token = sorted_tokens[i]
            j = i
            while j < n and sorted_tokens[j] == token:
                j += 1
            weight = weights[min(j - i, 255)]
            projection = mix(token + offsets[w])
            for bit in range(64):
                sums[bit] += weight * (np.int32((projection >> U64(bit)) & U64(1)) * np.int32(2) - np.int32(1))
            i = j
        word = U64(0)
        for bit in range(64):
            if sums[bit] > 0:
                word |= U64(1) << U64(bit)
        blocks[2 * w] = np.uint32(word & U64(0xFFFFFFFF))
        blocks[2 * w + 1] = np.uint32(word >> U64(32))


@kernel
def fingerprints(words, n, fp):
    for i in range(n):
        fp[i] = mix(U64(words[i]) + U64(0x7077))


@kernel
def start_of(fp, first, end):
    """The first 8 tokens of fp[first:end] as one number."""
    h = U64(end - first < 8)
    for i in range(first, min(first + 8, end)):
        h = mix(h ^ fp[i])
    return h


@kernel
def pages_into(seed, first, last, at, constants, rows):
    multipliers, factors, offsets, weights = constants
    minvalues, blocks, head, content, tokens, origins, changes = rows
    words, fp = np.empty(TOKENS_MAX, np.uint32), np.empty(TOKENS_MAX, np.uint64)
    shingles, order, sums = np.empty(TOKENS_MAX, np.uint64), np.empty(TOKENS_MAX, np.uint64), np.empty(64, np.int32)
    for number in range(first, last):
        n, _, front, end, origins[at], changes[at] = page(seed, number, words)
        fingerprints(words, n, fp)
        keys_of(fp, n, multipliers, factors, offsets, weights, shingles, order, sums, minvalues[at], blocks[at])
        head[at], content[at], tokens[at] = start_of(fp, 0, n), start_of(fp, front, end), n
        at += 1


@dataclass
class Mixture:
    """What keys are made of, row by row in the order of a log.

    minvalues uint32[n, functions]; blocks uint32[n, 12]; head, content, place uint64[n]; tokens int64[n]. content: the
    start of the main content, of generated pages that of the body. posted bool[n]: pages that found clusters, all but
    the repeats. pairs int64[p, 2]: (the page that is repeated, the repeat); kinds
    int64[p]: places in `names`, what the repeat is.
    """

    minvalues: npt.NDArray[np.uint32]
    blocks: npt.NDArray[np.uint32]
    head: npt.NDArray[np.uint64]
    content: npt.NDArray[np.uint64]
    place: npt.NDArray[np.uint64]
    tokens: npt.NDArray[np.int64]
    posted: npt.NDArray[np.bool_]
    pairs: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    names: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.head)


def constants(functions: int) -> tuple[npt.NDArray[np.uint64], ...]:
    """Multipliers, factors, offsets and weights, the same in every run."""
    random = np.random.default_rng(5)

    def odd(count: int) -> npt.NDArray[np.uint64]:
        return random.integers(0, 1 << 63, size=count, dtype=np.uint64) << U64(1) | U64(1)

    return odd(functions), odd(SHINGLE), odd(BLOCKS // 2), np.array(LOG_WEIGHTS, dtype=np.int32)


def generated(seed: int, count: int, functions: int, threads: int = 2) -> Mixture:
    """The first `count` generated pages. functions: minvalues that are kept of each."""
    minvalues, blocks = np.empty((count, functions), np.uint32), np.empty((count, BLOCKS), np.uint32)
    head, content, tokens = np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.int64)
    origins, changes = np.empty(count, np.int64), np.empty(count, np.int64)
    rows, given = (minvalues, blocks, head, content, tokens, origins, changes), constants(functions)
    with ThreadPoolExecutor(threads) as pool:
        running = [
            pool.submit(pages_into, U64(seed), first, min(count, first + _PART), first, given, rows)
            for first in range(0, count, _PART)
        ]
        for part in running:
            part.result()
    repeats = np.flatnonzero((changes >= 0) & (changes < EXACT))
    return Mixture(
        minvalues,
        blocks,
        head,
        content,
        np.arange(count, dtype=np.uint64) * U64(0x9E3779B97F4A7C15),  # every generated page has a URL of its own
        tokens,
        changes < 0,
        np.stack([origins[repeats], repeats], axis=1),
        changes[repeats],
        list(CHANGES),
    )


def joined(first: Mixture, second: Mixture) -> Mixture:
    """Both, one after the other."""
    n = len(first)

    def both(name: str) -> npt.NDArray[np.generic]:
        return np.concatenate([getattr(first, name), getattr(second, name)])

    columns = {name: both(name) for name in ("minvalues", "blocks", "head", "content", "place", "tokens", "posted")}
    pairs = np.concatenate([first.pairs, second.pairs + n])
    kinds = np.concatenate([first.kinds, second.kinds + len(first.names)])
    return Mixture(**columns, pairs=pairs, kinds=kinds, names=first.names + second.names)


def words_of(seed: int, number: int) -> Iterator[npt.NDArray[np.uint32]]:
    """Title, front, body and end of a generated page, as numbers of words."""
    words = np.empty(TOKENS_MAX, np.uint32)
    n, title, front, end, _, _ = page(U64(seed), number, words)
    yield from np.split(words[:n], [title, front, end])
