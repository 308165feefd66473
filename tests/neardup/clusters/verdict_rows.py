"""Columns of verdicts, made of the verdicts of the Python fold as the fold's kernel fills them."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from neardup.clusters import evidence
from neardup.clusters.verdict_columns import KINDS, Form, VerdictColumns, blank
from neardup.pairs.pair import Pair
from neardup.rules import rule_of
from neardup.rules.posted_keys import families_of
from neardup.rules.records import BY

#: In evidence, while it is recorded: number of the pair.
MARK = "#pair"
CODES = {kind: code for code, kind in enumerate(KINDS)}


@contextmanager
def recording():
    """Yields a list that collects (pair, ruling, records of both pages or None) of the evidence that the fold makes."""
    known, of_pair = [], evidence.of_pair

    def marked(decider):
        def made(pair, ruling):
            known.append((pair, ruling, None))
            return rule_of(decider).evidence(pair, ruling) | {MARK: len(known) - 1}

        return SimpleNamespace(evidence=made)

    def of_headers(decider, header, other, pair, ruling):
        out = of_pair(decider, header, other, pair, ruling)
        known[out[MARK]] = pair, ruling, (header.record, other.record)
        return out

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(evidence, "rule_of", marked)
        monkeypatch.setattr(evidence, "of_pair", of_headers)
        yield known


class Rows:
    """Fills columns. records: records by page id, of the batch and of all pages before it."""

    def __init__(self, records, decider, known):
        self.records, self.known, self.families = records, known, families_of(decider)
        self.offsets, self.heap, self.turned = {}, bytearray(b"some bytes before the first record"), []

    def at(self, record):
        """Offset of some bytes in the heap."""
        if record not in self.offsets:
            self.offsets[record] = len(self.heap)
            self.heap += record
        return self.offsets[record]

    def page(self, row, name, page_id):
        row[name], row[f"{name}_at"] = page_id, self.at(self.records[page_id])

    def columns(self, batch, verdicts):
        """The columns of the verdicts on a batch. Takes the marks out of their evidence."""
        positions = {page_id: i for i, (page_id, _) in enumerate(batch)}
        rows = np.repeat(blank(), len(verdicts))
        for at, verdict in enumerate(verdicts):
            rows["i"][at] = positions[verdict.page_id]
            self.fill(rows[at], verdict, verdicts[at - 2] if verdict.n == 2 else None)
        return VerdictColumns(
            rows,
            np.frombuffer(bytes(self.heap), np.uint8),
            np.array([page_id for page_id, _ in batch], np.int64),
            np.array([pair for pair, _, _ in self.known], np.float64).reshape(-1, len(Pair._fields)),
            np.array(self.turned, np.uint64),
            BY,
        )

    def fill(self, row, verdict, claim):
        """claim: on a page that gives its cluster back, the verdict on the page that reclaims it."""
        row["n"], row["kind"], row["cut"] = verdict.n, CODES[verdict.verdict], verdict.candidates_cut
        standing, shown = verdict.standing or {}, verdict.representative
        representative = shown or standing.get("representative")
        of = verdict.page_id
        if verdict.n:
            of = claim.evidence["reclaimed"]["page_id"] if claim else shown.page_id
        row["at"] = self.at(self.records[of])
        row["named"] = shown is not None
        if verdict.replaces is not None:
            row["replaces"] = verdict.replaces
        if verdict.cluster is not None:
            row["cluster"], row["size"], row["revision"] = verdict.cluster, verdict.cluster_size, verdict.revision
            # the one that founded or reclaimed a cluster represents it
            self.page(row, "founding", verdict.page_id if representative is None else representative.page_id)
            if verdict.canonical != (verdict.url if representative is None else representative.url):
                text = verdict.canonical.encode()
                row["canonical_at"], row["canonical_bytes"] = self.at(text), len(text)
        if verdict.content_of is not None:
            self.page(row, "content_of", verdict.content_of.page_id)
        if standing:
            row["standing"] = CODES[standing["verdict"]]
            row["standing_content_of"] = standing.get("content_of", -2)
        self.prove(row, verdict)

    def prove(self, row, verdict):
        proof = verdict.evidence
        turned = [int(name.partition(":")[2], 16) for name in proof.get("turned_hot", ())]
        row["turned"], row["turned_many"] = len(self.turned), len(turned)
        self.turned += turned
        row["form"] = form = form_of(verdict)
        row["candidates"], row["kept_apart"] = proof.get("candidates", 0), "kept_apart" in proof
        row["others"], row["alike"] = proof.get("siblings", (0, 0))
        other = None
        if form is Form.BEST:
            other = verdict.representative or verdict.content_of
            row["keys"] = self.mask(proof["keys"])
            row["b_at"] = self.at(self.records[other.page_id])
        elif form in (Form.NEAREST, Form.DIGEST, Form.CLAIM):
            named = proof["nearest" if form is Form.NEAREST else "holder" if form is Form.DIGEST else "reclaimed"]
            self.page(row, "other", named["page_id"])
            row["b_at"] = row["founding_at"] if form is Form.DIGEST else row["other_at"]
        row["a_at"] = row["at"]
        for part in (proof, proof.get("nearest", {}), proof.get("reclaimed", {})):
            if (number := part.pop(MARK, None)) is not None:
                _, ruling, records = self.known[number]
                row["pair"], row["by"], row["whole"] = number, BY.index(ruling.by), type(ruling.score) is int
                row["score"], row["demand"], row["added"] = ruling.score, ruling.demand, ruling.added
                if records is not None:
                    row["a_at"], row["b_at"] = map(self.at, records)

    def mask(self, keys):
        """Bits of keys with these numbers by family."""
        left, out = dict(keys), 0
        for bit, family in enumerate(self.families):
            if left.get(family, 0):
                left[family] -= 1
                out |= 1 << bit
        return out


def form_of(verdict):
    proof = {name: value for name, value in verdict.evidence.items() if name != "turned_hot"}
    if not proof:
        return Form.EMPTY
    if "holder" in proof:
        return Form.DIGEST
    if "reclaimed" in proof:
        return Form.CLAIM
    if "keys" in proof:
        return Form.BEST
    if "nearest" in proof:
        return Form.NEAREST
    return Form.ALONE if set(proof) == {"candidates"} else Form.CHECK
