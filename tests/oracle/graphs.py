"""The graphs of Henzinger 2006 and what needs no labels, in plain Python, pair by pair; sharing no code with neardup.

A crawl is a list of fetches in order, each a dictionary: url (normalised), tokens (any values), b (6 supershingles) and
c (384 bits as one number). A table is {row: {column: value}}, by the names that an evaluation gives its tables; left
out are exponents.
"""

from collections import Counter, defaultdict
from statistics import mean, median

from tests.oracle.lcs import lcs


def share(part, whole):
    return part / whole if whole else None


def host(url):
    return url.split("//")[1].split("/")[0].split("@")[-1].split(":")[0]


def site(url):
    name = host(url)
    return name if name.count(".") <= 1 else name[name.index(".") + 1 :]


def term_difference(one, other):
    """Tokens outside a longest common subsequence."""
    return len(one) + len(other) - 2 * lcs(one, other)


class Graphs:
    def __init__(self, fetches, wide=340):
        self.wide = wide
        last = {page["url"]: at for at, page in enumerate(fetches)}
        self.pages, self.number, sets = [], {}, {}
        for at, page in enumerate(fetches):
            if last[page["url"]] == at and page["tokens"]:
                twin = sets.setdefault(tuple(page["tokens"]), len(self.pages))
                self.number[page["url"]] = twin
                if twin == len(self.pages):
                    self.pages.append(page)
        self.pairs = {}  # pages a < b -> (B-similarity, C-similarity, whether on one site)
        self.graph = {"B": [], "C": [], "wide": []}
        for b in range(len(self.pages)):
            for a in range(b):
                agreeing = 384 - (self.pages[a]["c"] ^ self.pages[b]["c"]).bit_count()
                equal = sum(map(int.__eq__, self.pages[a]["b"], self.pages[b]["b"]))
                if equal >= 2:
                    self.graph["B"].append((a, b))
                if agreeing >= 372 and self._block(a, b):
                    self.graph["C"].append((a, b))
                if agreeing >= wide:
                    self.graph["wide"].append((a, b))
        for graph in self.graph.values():
            graph.sort()
        self._differences = {}

    def _block(self, a, b):
        differing = self.pages[a]["c"] ^ self.pages[b]["c"]
        return any(differing >> 32 * place & 0xFFFFFFFF == 0 for place in range(12))

    def pair(self, pair):
        if pair not in self.pairs:
            one, other = (self.pages[page] for page in pair)
            equal = sum(map(int.__eq__, one["b"], other["b"]))
            agreeing = 384 - (one["c"] ^ other["c"]).bit_count()
            self.pairs[pair] = equal, agreeing, site(one["url"]) == site(other["url"])
        return self.pairs[pair]

    def on_one_site(self, pairs):
        return [pair for pair in pairs if self.pair(pair)[2]]

    def on_two(self, pairs):
        return [pair for pair in pairs if not self.pair(pair)[2]]

    def difference(self, pair):
        if pair not in self._differences:
            one, other = (self.pages[page]["tokens"] for page in pair)
            self._differences[pair] = term_difference(one, other)
        return self._differences[pair]

    def by_site(self, pairs):
        return Counter(name for pair in pairs for name in {site(self.pages[page]["url"]) for page in pair})

    def graphs(self):
        out = defaultdict(dict)
        for name in "BC":
            edges, column = self.graph[name], f"{name} graph"
            degrees = Counter(page for pair in edges for page in pair)
            joined = len(degrees)
            out["pages, identity sets set aside"][column] = len(self.pages)
            out["pages with an edge"][column] = joined
            out["their share"][column] = share(joined, len(self.pages))
            out["edges (similar pairs)"][column] = len(edges)
            out["average degree of all pages"][column] = share(2 * len(edges), len(self.pages))
            out["average degree of pages with an edge"][column] = share(2 * len(edges), joined)
            out["greatest degree"][column] = max(degrees.values(), default=0)
            for least in (2, 3, 5, 10, 50, 100, 500, 1000):
                row = f"of the pages with an edge, the share of degree {least} or more"
                out[row][column] = share(sum(degree >= least for degree in degrees.values()), joined)
        names = {row: cells for row, cells in out.items() if not row.startswith("of the") or any(cells.values())}
        return {"1-graphs": names}

    def levels(self):
        tables = {"2-b-similarity": {}, "2-c-similarity": {}}
        groups = [("2-b-similarity", "B", level, 0, level, level) for level in range(2, 7)]
        groups.append(("2-b-similarity", "B", "all", 0, 2, 6))
        ranges = [(382, 384), (379, 381), (376, 378), (372, 375), (372, 384)]
        groups += [
            ("2-c-similarity", "C", "all" if high - low > 9 else f"{low}-{high}", 1, low, high) for low, high in ranges
        ]
        for table, name, row, place, low, high in groups:
            here = [pair for pair in self.graph[name] if low <= self.pair(pair)[place] <= high]
            tables[table][row] = {
                "pairs": len(here),
                "share": share(len(here), len(self.graph[name])),
                "of them on one site": share(len(self.on_one_site(here)), len(here)),
            }
        return tables

    def differences(self):
        out = defaultdict(dict)
        for name in "BC":
            sizes = [self.difference(pair) for pair in self.graph[name]]
            column, n = f"{name} graph", len(sizes)
            out["pairs looked at"][column] = n
            out["pairs whose texts are gone or too long"][column] = 0
            out["mean"][column] = mean(sizes) if sizes else None
            out["median"][column] = median(sizes) if sizes else None
            reached = [size for size in sizes if 10 * sum(other <= size for other in sizes) >= 9 * n]
            out["90% of the pairs differ in at most"][column] = min(reached, default=None)
            out["share of 2 (one word replaced)"][column] = share(sizes.count(2), n)
            out["share below 10"][column] = share(sum(size < 10 for size in sizes), n)
            out["number over 200"][column] = sum(size > 200 for size in sizes)
            out["share over 200"][column] = share(sum(size > 200 for size in sizes), n)
        return {"7-differences": dict(out)}

    def between(self):
        by_b, by_c = {}, {}
        for name, levels in {**{level: [level] for level in range(2, 7)}, "all": range(2, 7)}.items():
            bits = sorted(self.pair(pair)[1] for pair in self.graph["B"] if self.pair(pair)[0] in levels)
            middle = mean(bits) if bits else None
            by_b[name] = {
                "pairs": len(bits),
                "mean C-similarity": middle,
                "median": median(bits) if bits else None,
                "standard deviation": mean((x - middle) ** 2 for x in bits) ** 0.5 if len(bits) > 1 else None,
                "share of at least 372": share(sum(x >= 372 for x in bits), len(bits)),
            }
        ranges = {f"{low}-{high}": (low, high) for low, high in ((382, 384), (379, 381), (376, 378), (372, 375))}
        for name, (low, high) in {**ranges, "all": (372, 384)}.items():
            equal = [self.pair(pair)[0] for pair in self.graph["C"] if low <= self.pair(pair)[1] <= high]
            by_c[name] = {
                "pairs": len(equal),
                "mean B-similarity": mean(equal) if equal else None,
                "share of at least 2": share(sum(x >= 2 for x in equal), len(equal)),
                "share of 0": share(equal.count(0), len(equal)),
            }
        return {"9-c-for-b": by_b, "9-b-for-c": by_c}

    def hosts(self):
        sizes = Counter(host(page["url"]) for page in self.pages)
        n, counts = len(self.pages), sorted(sizes.values(), reverse=True)
        rows = {
            "hosts": len(counts),
            "pages": n,
            "pages a host, on average": share(n, len(counts)),
            "median": median(counts) if counts else None,
            "pages of the largest host": max(counts, default=0),
            "share of the hosts with one page": share(counts.count(1), len(counts)),
            "share of the pages that are on the ten largest hosts": share(sum(counts[:10]), n),
        }
        largest = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:20]
        return {
            "hosts": {row: {"here": value} for row, value in rows.items()},
            "hosts-largest": {name: {"pages": count, "share": count / n} for name, count in largest},
        }
