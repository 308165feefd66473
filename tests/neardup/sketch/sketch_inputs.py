"""Texts, layouts and seeds that the tests of sketches share."""

import random

import numpy as np

from neardup.scheme import Scheme
from neardup.sketch.shape import shape_of
from neardup.sketch.sketch_record import Sketch
from neardup.text.one_page_tokens import Tokens

SEED = 0x0123456789ABCDEF
SCHEME = Scheme(seed=SEED)
SHAPE = shape_of(SCHEME)
#: Flags of tokens.
IN_TITLE, IN_LINK = 1, 2


def words_of(count, seed, vocabulary=3000):
    """A text with a few frequent and many rare words, some of them numbers."""
    rng = random.Random(seed)
    return [
        f"w{int(rng.paretovariate(0.6)) % vocabulary}" if rng.random() < 0.9 else str(rng.randrange(50))
        for _ in range(count)
    ]


def layout_of(count, seed):
    """Block numbers with gaps, and words in links."""
    rng = random.Random(seed)
    blocks, links, block = [], [], 0
    while len(blocks) < count:
        size = rng.choice((1, 2, 3, 8, 15, 40, 90))
        if rng.random() < 0.3:
            links += [i for i in range(len(blocks), min(count, len(blocks) + size)) if rng.random() < 0.8]
        blocks += [block] * size
        block += rng.choice((1, 1, 3))
    return blocks[:count], links


def blocks_of(*sizes):
    return [block for block, size in enumerate(sizes) for _ in range(size)]


def chosen_by(way, words, title, links, blocks):
    """Numbers of the words that `main_content` or `article` chooses; the first `title` words are the title."""
    encoded = [word.encode() for word in words]
    text = np.frombuffer(b" ".join(encoded) + bytes(64), np.uint8)
    ends = np.cumsum([len(word) + 1 for word in encoded], dtype=np.int64) - 1
    starts = ends - [len(word) for word in encoded]
    flags = np.zeros(len(words), np.uint8)
    flags[:title] |= IN_TITLE
    flags[list(links)] |= IN_LINK
    spans = starts.astype(np.uint32), ends.astype(np.uint32)
    tokens = Tokens(np.zeros(len(words), np.uint64), flags, np.array(blocks, np.int32), *spans, text)
    return np.flatnonzero(way(tokens)).tolist()


def edited(words, share, seed):
    """Some words replaced, runs cut out and moved."""
    rng = random.Random(seed)
    out = [f"new{rng.randrange(10**6)}" if rng.random() < share else word for word in words]
    for _ in range(int(rng.random() * 4)):
        at, to = sorted(rng.randrange(len(out) + 1) for _ in range(2))
        to = min(to, at + len(out) // 10)
        part, out = out[at:to], out[:at] + out[to:]
        if rng.random() < 0.5:
            place = rng.randrange(len(out) + 1)
            out[place:place] = part
    return out


def fingerprints(count, seed):
    """uint64[count] random tokens."""
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def fields_of(record):
    """What the oracle says of a page, read from its record."""
    view = Sketch(record)
    out = view.to_dict()
    names = {n: [list(x) for x in getattr(view, n)] for n in ("title_names", "head_names")}
    tuples = {n: list(out[n]) for n in ("supershingles", "simhash", "wide", "logtf")}
    tapes = ("tape", "hashes", "content_tape", "bloom", *(("article_tape",) if "article_tape" in out else ()))
    raw = {n: getattr(view, n) for n in tapes}
    return out | names | tuples | raw
