"""The peers' side, run by the Python of their own environment: texts of a stream in, the pages that each hides out.

Input is a JSON list of pages, each a list of numbers of tokens; output {peer: {page: the page it is hidden behind}}.
"""

import json
import sys

SIZE = 5


def datasketch(pages):
    """MinHash LSH, 128 permutations, a Jaccard of .8: hidden behind the first shown page that a query finds."""
    from datasketch import MinHashLSH

    index, found = MinHashLSH(threshold=0.8, num_perm=128), {}
    for number, sketch in enumerate(_sketches(pages, 128)):
        if others := index.query(sketch):
            found[number] = min(others)
        else:
            index.insert(number, sketch)
    return found


def text_dedup(pages):
    """The method of text-dedup: bands of 256 permutations for a Jaccard of .7, clusters by union, no verification."""
    from datasketch import MinHashLSH

    index, root, found = MinHashLSH(threshold=0.7, num_perm=256), {}, {}

    def top(number):
        while root[number] != number:
            number = root[number]
        return number

    for number, sketch in enumerate(_sketches(pages, 256)):
        root[number] = number
        for other in index.query(sketch):
            first, second = sorted((top(other), top(number)))
            root[second] = first
        index.insert(number, sketch)
        if top(number) != number:
            found[number] = top(number)
    return found


def _sketches(pages, permutations):
    from datasketch import MinHash

    for page in pages:
        sketch = MinHash(num_perm=permutations)
        sketch.update_batch([repr(page[i : i + SIZE]).encode() for i in range(max(1, len(page) - SIZE + 1))])
        yield sketch


if __name__ == "__main__":
    texts = json.load(sys.stdin)
    json.dump({peer.__name__: peer(texts) for peer in (datasketch, text_dedup)}, sys.stdout)
