"""The tables of Henzinger 2006 that need labels, in plain Python, from their definitions; sharing no code with neardup.

Labels are dictionaries as in a file of labels. Left out are intervals, and what automatic drafts guess.
"""

from collections import Counter, defaultdict

from tests.oracle.graphs import Graphs, share
from tests.oracle.sketches import splitmix


def rank(a, b, seed):
    return splitmix((a << 32 | b) ^ seed)


class Evaluation(Graphs):
    def __init__(self, fetches, labels=(), *, seed=0, wide=340):
        super().__init__(fetches, wide)
        self.seed = seed
        self.labels = self._joined(labels)

    def _joined(self, lines):
        """pair -> (label, reasons, samples): the last word of each labeller, of those the majority."""
        words, drawn = {}, defaultdict(set)
        for line in lines:
            ends = [self.number.get(line[side]["url"]) for side in "ab"]
            if None in ends or ends[0] == ends[1]:
                continue
            pair = min(ends), max(ends)
            drawn[pair] |= {part.split(":")[0].strip() for part in line.get("sample", "").split("+")} - {""}
            key = pair, line.get("labeller", ""), frozenset((line["a"]["url"], line["b"]["url"]))
            words.pop(key, None)  # labelled again: the last label counts
            words[key] = line
        votes = defaultdict(list)
        for (pair, _, _), line in words.items():
            if line["label"] != "withdrawn":
                votes[pair].append(line)
        out = {}
        for pair, values in sorted(votes.items()):
            most = Counter(line["label"] for line in values).most_common(2)
            if len(most) == 1 or most[0][1] > most[1][1]:
                chosen = next(line for line in values if line["label"] == most[0][0])
                out[pair] = chosen["label"], chosen.get("reasons", []), drawn[pair]
        return out

    def drawn(self, *names):
        """The labelled pairs that stand for a graph; all where no label says how its pair was drawn from it."""
        found = [pair for pair, (_, _, samples) in self.labels.items() if samples & set(names)]
        return found or list(self.labels)

    def judged(self, algorithm):
        """The labelled pairs of an algorithm: drawn from its graph, and similar by it."""
        place, least = (0, 2) if algorithm == "B" else (1, 372)
        return [pair for pair in self.drawn(algorithm) if self.pair(pair)[place] >= least]

    def correct(self, pair):
        return self.labels[pair][0] == "correct"

    # tables 3 to 6, 8, 11: what labels say

    def row(self, pairs):
        n, count = len(pairs), Counter(self.labels[pair][0] for pair in pairs)
        forms = sum(self.labels[p][0] == "undecided" and "prefilled_form" in self.labels[p][1] for p in pairs)
        return {
            "labelled pairs": n,
            "correct": share(count["correct"], n),
            "not correct": share(count["incorrect"], n),
            "undecided": share(count["undecided"], n),
            "(forms)": share(forms, n),
            "correct with forms": share(count["correct"] + forms, n),
        }

    def sites(self, pairs):
        return {"all": pairs, "same site": self.on_one_site(pairs), "different sites": self.on_two(pairs)}

    def both_judged(self):
        of_b, of_c = self.judged("B"), self.judged("C")
        b = self.sites(of_b) | {f"B-similarity {n}": [p for p in of_b if self.pair(p)[0] == n] for n in range(2, 7)}
        names = {"C-similarity >= 382": (382, 384), "C-similarity 379-381": (379, 381)}
        names |= {"C-similarity 376-378": (376, 378), "C-similarity < 376": (0, 375)}
        c = self.sites(of_c)
        c |= {name: [p for p in of_c if low <= self.pair(p)[1] <= high] for name, (low, high) in names.items()}
        return {
            "3-b-judged": {name: self.row(pairs) for name, pairs in b.items()},
            "4-c-judged": {name: self.row(pairs) for name, pairs in c.items()},
        }

    def kinds(self):
        names = {"URL only": "own_url", "time stamp only": "time_stamp", "combination": "combination"}
        names |= {"execution time only": "execution_time", "visitor count only": "visitor_count"}
        names |= {"message id only": "message_id", "session id only": "session_id", "server name only": "server_name"}
        names |= {"invisible": "invisible", "entry pages": "entry_pages", "rest": "rest"}
        out = {}
        for name in "BC":
            correct = [pair for pair in self.judged(name) if self.correct(pair)]
            kinds = {pair: self.labels[pair][1] for pair in correct if self.labels[pair][1]}
            kinds = {pair: found[0] if len(found) == 1 else "combination" for pair, found in kinds.items()}
            here = {pair: kind for pair, kind in kinds.items() if self.pair(pair)[2]}
            rows = {}
            for row, kind in names.items():
                n, m = (list(some.values()).count(kind) for some in (kinds, here))
                rows[row] = {"pairs": n, "share": share(n, len(kinds))}
                rows[row] |= {"same site": m, "same site: share": share(m, len(here))}
            out[f"5-differences-{name.lower()}"] = rows
        return out

    def undecided(self):
        rows, known = {}, {"prefilled, erasable form": "prefilled_form", "different minor item": "minor_item"}
        known["cannot be evaluated"] = "cannot_evaluate"
        for name in "BC":
            pairs = [pair for pair in self.judged(name) if self.labels[pair][0] == "undecided"]
            here = self.on_one_site(pairs)
            for text, reason in [*known.items(), ("other, or no reason given", None)]:
                if reason:
                    n, m = (sum(reason in self.labels[pair][1] for pair in some) for some in (pairs, here))
                else:
                    n, m = (
                        sum(not set(known.values()) & set(self.labels[p][1]) for p in some) for some in (pairs, here)
                    )
                rows[f"{name}: {text}"] = {"pairs": n, "share": share(n, len(pairs))}
                rows[f"{name}: {text}"] |= {"same site": m, "same site: share": share(m, len(here))}
        return {"6-undecided": rows}

    def far_apart(self):
        rows = {}
        for name in "BC":
            far = [pair for pair in self.judged(name) if self.difference(pair) > 200]
            rows |= {f"{name}: {text}": self.counted(pairs) for text, pairs in self.sites(far).items()}
        return {"8-far-apart": rows}

    def counted(self, pairs):
        """Counts, not shares: there are few such pairs."""
        row = self.row(pairs)
        del row["correct with forms"]
        return {
            name: cell if name == "labelled pairs" else round((cell or 0) * len(pairs)) for name, cell in row.items()
        }

    def worst(self):
        out = {}
        for table, pairs in {"b": self.judged("B"), "c": self.judged("C"), "all": list(self.labels)}.items():
            wrong = [pair for pair in pairs if self.labels[pair][0] == "incorrect"]
            labelled = self.by_site(pairs)
            out[f"11-sites-{table}"] = {
                name: {
                    "incorrect pairs": count,
                    "share of them": count / len(wrong),
                    "its labelled pairs": labelled[name],
                    "incorrect of these": count / labelled[name],
                    "share of all labelled pairs": count / len(pairs),
                }
                for name, count in sorted(self.by_site(wrong).items(), key=lambda item: (-item[1], item[0]))[:20]
            }
        for name in "BC":
            labelled = self.by_site(self.judged(name))
            wrong = self.by_site(pair for pair in self.judged(name) if self.labels[pair][0] == "incorrect")
            busiest = sorted(self.by_site(self.graph[name]).items(), key=lambda item: (-item[1], item[0]))[:20]
            out[f"11-pairs-{name.lower()}"] = {
                one: {
                    "pairs": count,
                    "share of all": count / len(self.graph[name]),
                    "its labelled pairs": labelled[one],
                    "incorrect of these": share(wrong[one], labelled[one]),
                }
                for one, count in busiest
            }
        return out

    # table 10 and t

    def halves(self):
        ranked = sorted(self.judged("B"), key=lambda pair: rank(*pair, self.seed ^ 0x51))
        middle = (len(ranked) + 1) // 2
        return ranked[:middle], ranked[middle:]

    def at_cutoff(self, pairs, cutoff):
        kept = [pair for pair in pairs if self.pair(pair)[1] >= cutoff]
        right = sum(map(self.correct, kept))
        return len(kept), share(right, len(kept)), share(right, sum(map(self.correct, pairs)))

    def knee(self):
        """The cutoff farthest above the line between the ends of precision over R, both scaled to 0..1."""
        points = [(cutoff, *self.at_cutoff(self.halves()[0], cutoff)) for cutoff in range(300, 385)]
        points = [point for point in points if point[1] >= 10 and None not in point]
        if len({point[2:] for point in points}) < 3:
            return None
        scaled = []
        for at in (3, 2):
            values = [point[at] for point in points]
            low, high = min(values), max(values)
            if low == high:
                return None
            scaled.append([(value - low) / (high - low) for value in values])
        xs, ys = scaled
        dx, dy = xs[-1] - xs[0], ys[-1] - ys[0]
        if not dx and not dy:
            return None
        side = 1 if xs[-1] >= xs[0] else -1
        above = [side * (dx * (y - ys[0]) - dy * (x - xs[0])) for x, y in zip(xs, ys, strict=True)]
        best = max(range(len(above)), key=lambda at: (above[at], -at))
        return points[best][0] if above[best] > 1e-12 else None

    def combined(self):
        s1, s2 = self.halves()
        chosen = self.knee()
        cutoff = chosen or 355
        curve = {}
        for at in sorted({355, *range(cutoff - 6, cutoff + 7)} & set(range(300, 385))):
            kept, precision, r = self.at_cutoff(s1, at)
            name = f"{at} (knee)" if at == chosen else str(at)
            curve[name] = {"pairs of S1 kept": kept, "precision": precision, "R": r}
        ways = {
            "B alone": lambda b, c: True,
            "B with B-similarity of at least 3": lambda b, c: b >= 3,
            f"combined, cutoff {cutoff}": lambda b, c: c >= cutoff,
            "combined, cutoff 355": lambda b, c: c >= 355,
        }
        alternatives = {}
        for name, keeps in ways.items():
            kept = [pair for pair in s2 if keeps(*self.pair(pair)[:2])]
            alternatives[name] = {"pairs kept": len(kept), "precision": share(sum(map(self.correct, kept)), len(kept))}
            for column, where in (
                ("R", "all"),
                ("R, same site", "same site"),
                ("R, different sites", "different sites"),
            ):
                right, every = (sum(map(self.correct, self.sites(some)[where])) for some in (kept, s2))
                alternatives[name][column] = share(right, every)
        judged = self.sites([pair for pair in s2 if self.pair(pair)[1] >= cutoff])
        return {
            "10-cutoffs": curve,
            "10-s2": {name: self.row(pairs) for name, pairs in judged.items()},
            "10-alternatives": alternatives,
            "10-site-split": self.site_split(s2, cutoff),
        }

    def site_split(self, s2, cutoff):
        kept = [pair for pair in self.graph["B"] if self.pair(pair)[1] >= cutoff]
        s2 = [pair for pair in s2 if self.pair(pair)[1] >= cutoff]
        parts = {"B": (self.graph["B"], self.judged("B")), "C": (self.graph["C"], self.judged("C"))}
        parts["combined"] = kept, s2
        found = {}
        for name, (pairs, labelled) in parts.items():
            for where in (self.on_one_site, self.on_two):
                n, m, right = len(where(pairs)), len(where(labelled)), sum(map(self.correct, where(labelled)))
                found[name, where.__name__] = n, m, 0 if not n else n * right / m if m else None
        rows = {
            f"on one site by the combined algorithm, cutoff {cutoff}": [("combined", "on_one_site")],
            "on two sites by algorithm C": [("C", "on_two")],
            "site split": [("combined", "on_one_site"), ("C", "on_two")],
            "algorithm B": [("B", "on_one_site"), ("B", "on_two")],
            "algorithm C": [("C", "on_one_site"), ("C", "on_two")],
            f"combined, cutoff {cutoff}": [("combined", "on_one_site"), ("combined", "on_two")],
        }

        def total(parts):
            n, m, right = zip(*(found[part] for part in parts), strict=True)
            return sum(n), sum(m), None if None in right else sum(right)

        of_b = total(rows["algorithm B"])[2]
        out = {}
        for name, parts in rows.items():
            n, m, right = total(parts)
            out[name] = {"pairs of the crawl": n, "labelled": m, "correct pairs": right}
            out[name]["precision"] = None if right is None else share(right, n)
            out[name]["of B's correct pairs"] = None if right is None or of_b is None else share(right, of_b)
        return out

    def shares(self, levels):
        """levels: (pairs, labelled pairs). One without five labelled ones goes with the next, the last with others."""
        groups, rest = [], []
        for at, (pairs, labelled) in enumerate(levels):
            if pairs:
                rest = [*rest, (at, pairs, labelled)]
                if self.enough(rest):
                    groups, rest = [*groups, rest], []
        while groups and not self.enough(rest):
            rest = groups.pop() + rest
        out = [None if pairs else 0 for pairs, _ in levels]
        for group in [*groups, rest]:
            labelled = [pair for _, _, some in group for pair in some]
            for at, _, _ in group if self.enough(group) else ():
                out[at] = sum(map(self.correct, labelled)) / len(labelled)
        return out

    def enough(self, levels):
        return sum(len(labelled) for _, _, labelled in levels) >= min(5, sum(pairs for _, pairs, _ in levels))

    def of_level(self, graph, samples, place, low, high):
        def within(pairs):
            return [pair for pair in pairs if low <= self.pair(pair)[place] <= high]

        return len(within(self.graph[graph])), within(self.drawn(*samples))

    def t(self):
        """For labels drawn uniformly. Below 372 each range needs labels of its own."""
        by_b = [self.of_level("B", ["B"], 0, level, level) for level in range(2, 7)]
        shares = self.shares(by_b)
        of_b = None if None in shares else sum(n * right for (n, _), right in zip(by_b, shares, strict=True))
        upper = [(382, 384), (379, 381), (376, 378), (372, 375)]
        lower = [(max(low, self.wide), low + 2) for low in range(369, self.wide - 3, -3)]
        levels = [self.of_level("wide", ["C", "wide"], 1, *ends) for ends in upper]
        shares = dict(zip(upper, self.shares(levels), strict=True))
        for ends in lower:
            (shares[ends],) = self.shares([self.of_level("wide", ["C", "wide"], 1, *ends)])
        rows, total, right = {}, 0, 0
        for (low, high), part in shares.items():
            pairs, labelled = self.of_level("wide", ["C", "wide"], 1, low, high)
            for level in range(high, low - 1, -1):
                n, own = self.of_level("wide", ["C", "wide"], 1, level, level)
                more = sum(map(self.correct, own)) if len(labelled) == pairs else None if part is None else n * part
                total, right = total + n, None if None in (right, more) else right + more
                rows[level] = {"pairs": total, "estimated correct": right}
        names = {
            level: cells["estimated correct"] for level, cells in rows.items() if cells["estimated correct"] is not None
        }
        samples = set().union(*(samples for _, _, samples in self.labels.values()))
        if samples and not ("B" in samples and samples & {"C", "wide"}):
            of_b = None
        t = None
        if of_b and names and max(names.values()) >= of_b:
            t = min(names, key=lambda level: (abs(names[level] - of_b), -level))
        choice = {"estimated correct pairs of the B graph": of_b, "t for as many correct pairs": t}
        return {"t-choice": {row: {"here": value} for row, value in choice.items()}, "t-pairs": rows}

    # rules side by side

    def rules(self, clusters=None, run=""):
        """clusters: URL -> cluster in which a run left it."""

        def split(pair):
            b, c, same = self.pair(pair)
            return b >= 2 and c >= 355 if same else c >= 372

        def first_bits(pair):
            one, other = (self.pages[page]["c"] for page in pair)
            return 64 - ((one ^ other) & (1 << 64) - 1).bit_count() >= 59

        rules = {
            "shingling": lambda pair: self.pair(pair)[0] >= 2,
            "simhash": lambda pair: self.pair(pair)[1] >= 372,
            "combined": lambda pair: self.pair(pair)[0] >= 2 and self.pair(pair)[1] >= 355,
            "site-split": split,
            "simhash64": first_bits,
        }
        out = {}
        for where, pairs in self.sites(list(self.labels)).items():
            if not pairs:
                continue
            rows = {name: self.measured(pairs, accepts) for name, accepts in rules.items()}
            if clusters is not None:
                ends = {pair: [clusters.get(self.pages[page]["url"]) for page in pair] for pair in pairs}
                known = [pair for pair in pairs if None not in ends[pair]]
                rows[run] = self.measured(known, lambda pair, ends=ends: ends[pair][0] == ends[pair][1])
            out["rules-" + where.replace(" ", "-")] = rows
        return out

    def measured(self, pairs, accepts):
        taken = [pair for pair in pairs if accepts(pair)]
        right, correct = sum(map(self.correct, taken)), sum(map(self.correct, pairs))
        one_kind = correct in (0, len(pairs))
        return {
            "pairs": len(pairs),
            "correct": correct,
            "accepted": len(taken),
            "precision": None if one_kind else share(right, len(taken)),
            "recall": share(right, correct),
            "F1": None if one_kind else share(2 * right, len(taken) + correct),
        }

    def tables(self, clusters=None, run=""):
        out = {}
        for made in (
            self.graphs,
            self.levels,
            self.differences,
            self.between,
            self.hosts,
            self.both_judged,
            self.kinds,
        ):
            out |= made()
        for made in (self.undecided, self.far_apart, self.worst, self.combined, self.t):
            out |= made()
        return out | self.rules(clusters, run)
