"""Huang 2008 in plain Python, from neardup/partition/README.md: signatures with hashlib, windows as substrings, the LCS
by dynamic programming, regions by trying all, lists and rounds with dictionaries.
"""

import hashlib
import math
from collections import defaultdict
from itertools import combinations


def signatures(sentences, rotations=16, subsets=7, smallest=4, bytes_of=len):
    """Of distinct sentences, as numbers of 128 bits, by rotation and remainder. bytes_of: what a sentence counts."""
    out = []
    for r in range(rotations):
        by_remainder = defaultdict(list)
        for sentence in sentences:
            digest = hashlib.md5(sentence.encode()).digest()
            number = int.from_bytes(digest[r:] + digest[:r], "big")
            weight = round((1 + math.log(bytes_of(sentence))) * 2**20)  # whole numbers: a sum of zero is zero
            by_remainder[number % subsets].append((number, weight))
        for remainder in range(subsets):
            least = sorted(by_remainder[remainder])[:smallest]
            if len(least) < smallest:
                continue
            sums = [sum(w if number >> bit & 1 else -w for number, w in least) for bit in range(128)]
            out.append(sum(1 << bit for bit, total in enumerate(sums) if total > 0))
    return out


def width(text):
    """Bytes that a text of ASCII, Latin, Han and kana counts."""
    return sum(2 if ord(c) >= 0x2E80 else 1 for c in text)


def windows(text, size):
    """[start, end) of the windows of a text."""
    out = []
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if width(text[start:end]) >= size:
                out.append((start, end))
                break
    return out or ([(0, len(text))] if text else [])


def kept(text, other, size):
    """Places of the characters of `text` that lie in a window of the other text, too."""
    there = {other[a:b] for a, b in windows(other, size)}
    return sorted({place for a, b in windows(text, size) if text[a:b] in there for place in range(a, b)})


def edits(partner, start, end):
    """Edits of a range of the shorter text; None if it has nothing of the LCS."""
    matched = [x for x in range(start, end) if partner[x] >= 0]
    if not matched:
        return None
    passed = partner[matched[-1]] - partner[matched[0]] + 1 - len(matched)
    return end - start - len(matched) + passed


def regions(partner, slope_max=0.1, blocks=16, most=2):
    """The regions of a script, and how many characters of the LCS lie in them."""
    n = len(partner)
    blocks = min(blocks, n)
    cuts = [i * n // blocks for i in range(blocks + 1)]
    found = []

    def trustable(start, end):
        free = all(end <= a or b <= start for a, b in found)
        many = edits(partner, start, end)
        return free and many is not None and many <= slope_max * (end - start)

    def weight(start, end):
        return sum(2 * n - abs(2 * x + 1 - n) for x in range(start, end) if partner[x] >= 0)

    while len(found) < most:
        ranges = [(i, j) for i, j in combinations(range(blocks + 1), 2)]
        ranges = [(i, j) for i, j in ranges if 4 * cuts[j] > n and 4 * cuts[i] < 3 * n and trustable(cuts[i], cuts[j])]
        if not ranges:
            break
        i, j = min(ranges, key=lambda one: (-weight(cuts[one[0]], cuts[one[1]]), one[1] - one[0], one[0]))
        start, end = cuts[i], cuts[j]
        while end < n and trustable(start, end + 1):
            end += 1
        while start > 0 and trustable(start - 1, end):
            start -= 1
        found.append((start, end))
    trusted = sum(partner[x] >= 0 for start, end in found for x in range(start, end))
    return found, trusted


def sets(documents, uses_max=10_000, site_uses_max=400, absorbed=1):
    """Perhaps-similar sets {representative: others}. documents: {key: (site, signatures)}; greater keys are greater."""
    users = defaultdict(set)
    for key, (_, own) in documents.items():
        for signature in own:
            users[signature].add(key)
    lists = defaultdict(set)
    for keys in users.values():
        sites = [documents[key][0] for key in keys]
        most = max(map(sites.count, sites))
        if len(keys) > uses_max or (len(keys) > site_uses_max and 2 * most > len(keys)):
            continue
        lists[max(keys)] |= keys - {max(keys)}
    lists = {rep: items for rep, items in lists.items() if items}
    before = dict(lists)
    gone = set()
    for rep in sorted(lists, reverse=True):
        if rep in gone:
            continue
        reached = [rep]
        for _ in range(absorbed):
            fresh = sorted(
                {item for one in reached for item in before[one] if item in before and item not in gone and item != rep}
            )
            for item in fresh:
                lists[rep] = lists[rep] | before[item]
                gone.add(item)
            reached = fresh
    return {rep: items for rep, items in lists.items() if rep not in gone}


def compared(sets_, near, rounds=0):
    """The pairs that are compared, round by round. near: whether two keys are near-duplicates."""
    seen, out = {}, []
    left = {rep: {rep, *items} for rep, items in sets_.items()}
    while any(len(items) > 1 for items in left.values()) and (not rounds or len(out) < rounds):
        fresh = set()
        for items in left.values():
            if len(items) > 1:
                fresh |= {(max(items), item) for item in items - {max(items)}} - seen.keys()
        seen |= {pair: near(*pair) for pair in fresh}
        for family, items in left.items():
            rep = max(items, default=None)
            left[family] = {item for item in items if item != rep and not seen[rep, item]}
        out.append(fresh)
    return out
