"""The peers' side, run by the Python of their own environment: one JSON request a line in, one answer a line out.

`load` names a file of texts, the last of which are copies of the first; `run` a peer. The answer tells the seconds
from texts to sketches, and the shares of planted pairs and of unrelated pairs that it calls similar. `stream` names a
peer that judges each text against those before it: the answer tells the processor's seconds, and for each text with a
similar one before it the number of that one.
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


def _gaoya_index():
    from gaoya.minhash import MinHashStringIndex

    return MinHashStringIndex(
        hash_size=64,
        jaccard_threshold=SIMILAR,
        num_bands=BANDS,
        band_size=BAND,
        analyzer="word",
        lowercase=True,
        ngram_range=(WORDS, WORDS),
    )


def gaoya(texts):
    index = _gaoya_index()
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


def _stream(texts, sketch, query, similar, insert):
    """Each text against all before it, then into the index in memory -> {number: the first similar one}."""
    found = {}
    for number, text in enumerate(texts):
        made = sketch(text)
        for other in query(made):
            if similar(made, other):
                found[number] = other
                break
        insert(number, made)
    return found


def rensa_stream(texts):
    from rensa import RMinHash, RMinHashLSH

    index, held = RMinHashLSH(SIMILAR, PERM, BANDS), []

    def sketch(text):
        made = RMinHash(PERM, 42)
        made.update(shingles(text))
        return made

    def insert(number, made):
        index.insert(number, made)
        held.append(made)

    return _stream(texts, sketch, index.query, lambda made, other: made.jaccard(held[other]) >= SIMILAR, insert)


def datasketch_stream(texts):
    import xxhash
    from datasketch import MinHash, MinHashLSH

    index, held = MinHashLSH(num_perm=PERM, params=(BANDS, BAND)), []

    def sketch(text):
        made = MinHash(num_perm=PERM, hashfunc=xxhash.xxh32_intdigest)
        made.update_batch([shingle.encode() for shingle in shingles(text)])
        return made

    def insert(number, made):
        index.insert(number, made)
        held.append(made)

    return _stream(texts, sketch, index.query, lambda made, other: made.jaccard(held[other]) >= SIMILAR, insert)


def gaoya_stream(texts):
    """Its index makes the signature of a text twice, to query and to insert it. It checks the similarity itself."""
    index = _gaoya_index()
    return _stream(texts, lambda text: text, index.query, lambda made, other: True, index.insert_document)


PEERS = {f.__name__: f for f in (datasketch, rensa, gaoya, text_dedup, datatrove)}
STREAMS = {"datasketch": datasketch_stream, "rensa": rensa_stream, "gaoya": gaoya_stream}


def answer(texts, planted, name):
    started = time.perf_counter()
    _, similar = PEERS[name](texts)
    seconds = time.perf_counter() - started
    first = len(texts) - planted
    found = sum(similar(i, first + i) for i in range(planted)) / planted
    wrong = sum(similar(i, i + 1) for i in range(planted)) / planted
    return {"seconds": seconds, "found": found, "wrong": wrong}


def streamed(texts, name):
    started = time.process_time()
    found = STREAMS[name](texts)
    return {"seconds": time.process_time() - started, "found": list(found.items())}


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
            elif "stream" in request:
                reply = streamed(texts, request["stream"])
            else:
                reply = answer(texts, planted, request["run"])
        except Exception as error:  # noqa: BLE001 - an error of a peer is shown, and its row is void
            reply = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
