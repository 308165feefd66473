"""The peers' side, run by the Python of their own environment: one JSON request a line in, one answer a line out.

`load` names a file of texts, the last of which are copies of the first; `run` a peer. The answer tells the seconds
from texts to sketches (or to verdicts), and the shares of planted pairs and of unrelated pairs that it calls similar.
"""

import json
import re
import sys
import tempfile
import time

PERM = 84
WORDS = 8
BANDS, BAND = 12, 7
SIMILAR = 0.7

_WORD = re.compile(r"\w+")


def shingles(text):
    words = _WORD.findall(text.lower())
    return [" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)]


def datasketch(texts):
    import xxhash
    from datasketch import MinHash

    out = []
    for text in texts:
        sketch = MinHash(num_perm=PERM, hashfunc=xxhash.xxh32_intdigest)
        sketch.update_batch([shingle.encode() for shingle in shingles(text)])
        out.append(sketch)
    return out, lambda a, b: out[a].jaccard(out[b]) >= SIMILAR


def rensa(texts):
    from rensa import RMinHash

    out = []
    for text in texts:
        sketch = RMinHash(PERM, 42)
        sketch.update(shingles(text))
        out.append(sketch)
    return out, lambda a, b: out[a].jaccard(out[b]) >= SIMILAR


def gaoya(texts):
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(
        hash_size=64,
        jaccard_threshold=SIMILAR,
        num_bands=BANDS,
        band_size=BAND,
        analyzer="word",
        lowercase=True,
        ngram_range=(WORDS, WORDS),
    )
    for number, text in enumerate(texts):
        index.insert_document(number, text)
    return index, lambda a, b: b in index.query(texts[a])


def text_dedup(texts):
    import numpy as np
    from text_dedup.minhash import embed_func
    from text_dedup.utils.hashfunc import xxh3_32hash

    prime, top = np.uint32((1 << 32) - 5), np.uint32((1 << 32) - 1)
    state = np.random.RandomState(42)
    permutations = (
        state.randint(1, prime, size=(PERM,), dtype=np.uint32),
        state.randint(0, prime, size=(PERM,), dtype=np.uint32),
    )
    out = [
        embed_func(
            text,
            number,
            num_perm=PERM,
            ngram_size=WORDS,
            min_length=0,
            hashranges=[(i, i + 1) for i in range(PERM)],
            permutations=permutations,
            hash_func=xxh3_32hash,
            dtype=np.uint32,
            max_hash=top,
            modulo_prime=prime,
        )["__signatures__"]
        for number, text in enumerate(texts)
    ]
    return out, lambda a, b: sum(x == y for x, y in zip(out[a], out[b], strict=True)) >= SIMILAR * PERM


def datatrove(texts):
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature

    step = MinhashDedupSignature(
        tempfile.gettempdir(), MinhashConfig(n_grams=WORDS, num_buckets=BANDS, hashes_per_bucket=BAND)
    )
    out = [step.get_signature(step.get_shingles(text)) for text in texts]

    def similar(a, b):
        pairs = [(x, y) for p, q in zip(out[a], out[b], strict=True) for x, y in zip(p, q, strict=True)]
        return sum(x == y for x, y in pairs) >= SIMILAR * len(pairs)

    return out, similar


def rensa_verdicts(texts):
    """A stream: each text against all before it, then into the index in memory."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(SIMILAR, PERM, BANDS)
    held, found = [], {}
    for number, text in enumerate(texts):
        sketch = RMinHash(PERM, 42)
        sketch.update(shingles(text))
        for other in index.query(sketch):
            if sketch.jaccard(held[other]) >= SIMILAR:
                found[number] = other
                break
        index.insert(number, sketch)
        held.append(sketch)
    return held, lambda a, b: found.get(b) == a


PEERS = {f.__name__: f for f in (datasketch, rensa, gaoya, text_dedup, datatrove, rensa_verdicts)}


def answer(texts, planted, name):
    started = time.perf_counter()
    _, similar = PEERS[name](texts)
    seconds = time.perf_counter() - started
    first = len(texts) - planted
    found = sum(similar(i, first + i) for i in range(planted)) / planted
    wrong = sum(similar(i, i + 1) for i in range(planted)) / planted
    return {"seconds": seconds, "found": found, "wrong": wrong}


def main():
    texts, planted = [], 0
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                with open(request["load"], encoding="utf-8") as file:
                    texts = json.load(file)
                planted = request["planted"]
                reply = {"loaded": len(texts)}
            else:
                reply = answer(texts, planted, request["run"])
        except Exception as error:  # noqa: BLE001 - an error of a peer is shown, and its row is void
            reply = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
